#include "report/trace_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/executed.h"
#include "report/repair_text.h"
#include "report/trace_text.h"
#include "trace/names.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(uint32_t number) {
  return number == no_index ? Json(nullptr) : Json(number);
}

Json images(const Trace& trace) {
  Json all = Json::array();
  for (const TracedImage& image : trace.images)
    all.push_back({{"path", printable(image.path)},
                   {"build_id", hexadecimal(image.build_id)},
                   {"project", image.is_project}});
  return all;
}

Json processes(const Trace& trace) {
  Json all = Json::array();
  for (const TracedProcess& process : trace.processes)
    all.push_back({{"pid", process.pid},
                   {"parent", number_or_null(process.parent)},
                   {"executable", number_or_null(process.executable)},
                   {"name", printable(process.name)},
                   {"started_us", process.started.count()},
                   {"degraded", process.degraded}});
  return all;
}

Json threads(const Trace& trace) {
  Json all = Json::array();
  for (const TracedThread& thread : trace.threads) {
    Json json = {{"name", printable(thread.name.text)},
                 {"process", number_or_null(thread.process)},
                 {"tid", thread.tid},
                 {"parent", number_or_null(thread.parent)},
                 {"started_us", thread.started.count()}};
    if (!thread.title.empty()) json["title"] = printable(thread.title);
    if (!thread.name.role.empty()) json["role"] = printable(thread.name.role);
    if (thread.ended != Duration::zero()) json["ended_us"] = thread.ended.count();
    if (thread.calls_dropped > 0) json["events_dropped"] = thread.calls_dropped;
    all.push_back(std::move(json));
  }
  return all;
}

Json sites(const Trace& trace) {
  Json all = Json::array();
  for (const TracedSite& site : trace.sites)
    all.push_back({{"name", printable(to_string(site.name))},
                   {"group", site.group},
                   {"api", site.name.api},
                   {"function", printable(site.name.function)},
                   {"location", printable(site.location)},
                   {"image", number_or_null(site.image)},
                   {"address", fmt::format("{:#x}", site.address)}});
  return all;
}

Json visits(const Trace& trace) {
  Json all = Json::array();
  for (const TracedVisits& entry : trace.visits)
    all.push_back({{"thread", number_or_null(entry.thread)},
                   {"site", entry.site},
                   {"visits", entry.visits},
                   {"waited_us", entry.waited.count()}});
  return all;
}

Json stack(const TracedStack& traced) {
  Json all = Json::array();
  for (const TracedFrame& frame : traced.frames) {
    Json json = {{"image", number_or_null(frame.image)},
                 {"address", fmt::format("{:#x}", frame.address)},
                 {"source", Json::array()}};
    for (const Frame& source : frame.source)
      json["source"].push_back({{"function", printable(source.function)},
                                {"file", printable(source.file)},
                                {"line", source.line}});
    all.push_back(std::move(json));
  }
  return all;
}

Json stacks(const Trace& trace) {
  Json all = Json::array();
  for (const TracedStack& one : trace.stacks) all.push_back(stack(one));
  return all;
}

Json calls(const Trace& trace) {
  Json all = Json::array();
  for (const TracedCall& call : trace.calls) {
    Json json = {{"thread", call.thread},
                 {"site", call.site},
                 {"enter_us", call.enter.count()},
                 {"exit_us", call.exit.count()},
                 {"object", fmt::format("{:#x}", call.object)},
                 {"result", call.result}};
    if (call.value >= 0) json["value"] = call.value;
    if (call.stack != no_index) json["stack"] = call.stack;
    for (const auto& [set, name] :
         {std::pair(call.timed_out, "timed_out"), std::pair(call.delayed, "delayed"),
          std::pair(call.replaced, "replaced"), std::pair(call.unfinished, "unfinished"),
          std::pair(call.is_intervention, "is_intervention")})
      if (set) json[name] = true;
    all.push_back(std::move(json));
  }
  return all;
}

Json failures(const Trace& trace) {
  Json all = Json::array();
  for (const TracedFailure& failure : trace.failures)
    all.push_back({{"kind", failure.kind},
                   {"thread", number_or_null(failure.thread)},
                   {"signal", failure.signal},
                   {"at_us", failure.at.count()},
                   {"file", printable(failure.file)},
                   {"line", failure.line},
                   {"message", printable(failure.message)},
                   {"exception_type", printable(failure.exception_type)},
                   {"stack", stack(failure.stack)}});
  return all;
}

Json functions(const Trace& trace) {
  Json all = Json::array();
  for (const TracedFunction& function : trace.functions)
    all.push_back({{"image", number_or_null(function.image)},
                   {"address", fmt::format("{:#x}", function.address)},
                   {"kind", to_string(function.kind)},
                   {"name", printable(function.name)},
                   {"file", printable(function.file)}});
  return all;
}

Json exposures(const std::vector<Exposure>& exposed) {
  Json all = Json::object();
  for (const Exposure& one : exposed)
    for (const std::string& function : one.functions)
      all[printable(one.cause)].push_back(printable(function));
  return all;
}

Json losses(const Trace& trace) {
  Json json = {{"drops", Json::object()}, {"problems", Json::array()}};
  for (const Drops& drops : trace.drops) json["drops"][drops.what] = drops.count;
  if (trace.calls_left_out > 0) json["events_left_out"] = trace.calls_left_out;
  for (const std::string& problem : trace.problems) json["problems"].push_back(printable(problem));
  json["code_notes"] = code_notes_json(trace.code_notes);
  return json;
}

}  // namespace

nlohmann::ordered_json code_notes_json(const std::vector<CodeNote>& notes) {
  Json all = Json::array();
  for (const CodeNote& note : notes)
    all.push_back({{"text", printable(note.text)}, {"next", printable(note.next)}});
  return all;
}

std::string trace_json(const Test& test, const ExperimentResult& result,
                       const std::vector<Exposure>& exposed) {
  const Trace nothing;
  const Trace& trace = result.trace ? *result.trace : nothing;
  Json json = {{"format", 1},
               {"test", printable(to_string(test.id))},
               {"outcome", to_string(result.outcome.kind)},
               {"duration_us", result.outcome.duration.count()}};
  if (!result.outcome.signature.empty()) json["signature"] = result.outcome.signature;
  json["images"] = images(trace);
  json["processes"] = processes(trace);
  json["threads"] = threads(trace);
  json["sites"] = sites(trace);
  json["visits"] = visits(trace);
  json["stacks"] = stacks(trace);
  json["events"] = calls(trace);
  json["failures"] = failures(trace);
  json["functions"] = functions(trace);
  json["exposed"] = exposures(exposed);
  json.update(losses(trace));
  return json_text(json, 1) + "\n";
}

namespace {

Json time_or_null(std::optional<Duration> time) {
  return time ? Json(time->count()) : Json(nullptr);
}

Json place(const CodeSpot& where) {
  return {{"file", printable(where.file)},
          {"line", where.line},
          {"function", printable(where.function)}};
}

const char* name_of(Moment::What what) {
  switch (what) {
    case Moment::What::call:
      return "call";
    case Moment::What::return_from_call:
      return "return";
    case Moment::What::thread_end:
      return "thread_end";
    case Moment::What::failure:
      return "failure";
  }
  return "";
}

Json moment(const Moment& one) {
  Json json = {{"what", name_of(one.what)},
               {"thread", printable(one.thread)},
               {"started_by", printable(one.started_by)},
               {"place", place(one.place)}};
  if (one.caller) json["caller"] = place(*one.caller);
  if (!one.api.empty()) json["api"] = printable(one.api);
  json["passing_us"] = time_or_null(one.passing);
  json["failing_us"] = time_or_null(one.failing);
  return json;
}

Json wait(const CoveringWait& one) {
  return {{"moment", moment(one.moment)},
          {"is_sleep", one.is_sleep},
          {"times", one.times},
          {"asked_us", time_or_null(one.asked)},
          {"passing_us", time_or_null(one.passing)},
          {"failing_us", one.failing.count()},
          {"ran_out_passing", one.ran_out_passing},
          {"ran_out_failing", one.ran_out_failing},
          {"needed_us", time_or_null(one.needed)}};
}

Json causes(const std::vector<RootCause>& all) {
  Json list = Json::array();
  for (const RootCause& cause : all) {
    Json evidence = Json::array();
    for (const std::string& text : cause.evidence) evidence.push_back(printable(text));
    list.push_back(
        {{"cause", to_string(cause.kind)}, {"score", cause.score}, {"evidence", evidence}});
  }
  return list;
}

Json safe_texts(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(printable(text));
  return list;
}

Json late(const std::vector<Lateness>& all) {
  Json list = Json::array();
  for (const Lateness& one : all)
    list.push_back({{"thread", printable(one.thread)},
                    {"started_by", printable(one.started_by)},
                    {"site", printable(one.site)},
                    {"position", one.position},
                    {"place", place(one.place)},
                    {"longest_us", one.longest.count()},
                    {"times", one.times},
                    {"waits_for", printable(one.waits_for)}});
  return list;
}

Json count(const Count& count) {
  return Json::array({count.hits, count.runs});
}

// Hits and runs of what was asked; runs of 0: it was not.
Json proof(const Explanation& found) {
  const CauseFacts& facts = found.facts;
  return {{"is_shown", found.pair && found.pair->is_shown},
          {"is_gap", found.pair && found.pair->is_gap},
          {"kept", count(found.pair ? found.pair->kept : Count())},
          {"reversed", count(found.pair ? found.pair->reversed : Count())},
          {"late_as_a_whole", count(facts.late_as_a_whole)},
          {"longer_wait", count(facts.longer_wait)},
          {"shorter_wait", count(facts.shorter_wait)},
          {"waiting_first", count(facts.waiting_first)},
          {"after_its_end", count(facts.after_its_end)}};
}

}  // namespace

std::string explanation_json(const ExplanationReport& report) {
  const ExplanationWords words = words_of(report);
  const Explanation& found = report.explanation;
  Json json = {
      {"format", 1},
      {"test", words.test},
      {"outcome", to_string(report.repro.outcome)},
      {"signature", printable(report.repro.signature)},
      {"plausibility",
       report.repro.plausibility ? Json(to_string(*report.repro.plausibility)) : Json(nullptr)},
      {"is_margin", words.is_margin},
      {"summary", words.summary},
      {"causes", causes(found.causes)},
      {"advice", words.advice},
      {"patch", report.patch ? proposed_patch_json(*report.patch) : Json()},
      {"critical", found.pair ? moment(found.pair->first) : Json(nullptr)},
      {"barrier", found.pair ? moment(found.pair->second) : Json(nullptr)},
      {"same_object", found.pair && found.pair->same_object},
      {"wait", found.wait ? wait(*found.wait) : Json(nullptr)},
      {"failure", found.failure ? moment(*found.failure) : Json(nullptr)},
      {"experiments", words.experiments},
      {"ending", safe_texts(found.ending)},
      {"proof", proof(found)},
      {"late", late(found.late)},
      {"story", words.story},
      {"figures", words.figures},
      {"plan", words.plan},
      {"notes", words.notes}};
  return json_text(json, 1) + "\n";
}

namespace {

// Keys in the order in which they are set: stable files, and "ph" where people look for it.

constexpr size_t most_frames = 32;
constexpr int most_pids = 4'194'304;  // the kernel's own bound: runs do not share numbers

std::string dump(const Json& json) {
  return json_text(json);
}

// The list of calls, no matter who adds to it.
class SpanList {
 public:
  explicit SpanList(Sink& sink) : sink_(sink) {
    sink_.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  }

  void write(const Json& call) {
    sink_.write(first_ ? "\n" : ",\n");
    first_ = false;
    sink_.write(dump(call));
  }

  void end(const Json& other_data) {
    sink_.write("\n],\"otherData\":");
    sink_.write(dump(other_data));
    sink_.write("}\n");
  }

 private:
  Sink& sink_;
  bool first_ = true;
};

class Writer {
 public:
  Writer(const Trace& trace, SpanList& list, std::string prefix = "", int first_pid = 0)
      : trace_(trace),
        wrappers_({&trace}),
        list_(list),
        prefix_(std::move(prefix)),
        first_pid_(first_pid) {}

  void operator()() {
    write_names();
    for (const TracedCall& call : trace_.calls) list_.write(call_span(call));
    for (const TracedFailure& failure : trace_.failures) list_.write(failure_mark(failure));
  }

  Json losses() const {
    Json json = {{"format", 1}, {"drops", Json::object()}, {"problems", Json::array()}};
    for (const Drops& drops : trace_.drops) json["drops"][drops.what] = drops.count;
    if (trace_.calls_left_out > 0) json["events_left_out"] = trace_.calls_left_out;
    for (const std::string& problem : trace_.problems)
      json["problems"].push_back(printable(problem));
    return json;
  }

 private:
  int pid_of(const TracedThread& thread) const {
    return first_pid_ +
           (thread.process < trace_.processes.size() ? trace_.processes[thread.process].pid : 0);
  }

  // The row of a thread. Thread ids are reused, numbers in the trace are not.
  void add_row(Json& call, uint32_t thread) const {
    const bool known = thread < trace_.threads.size();
    call["pid"] = known ? pid_of(trace_.threads[thread]) : first_pid_;
    call["tid"] = known ? thread + 1 : 0;
  }

  void write_names() {
    for (const TracedProcess& process : trace_.processes)
      list_.write({{"ph", "M"},
                   {"name", "process_name"},
                   {"pid", first_pid_ + process.pid},
                   {"args", {{"name", prefix_ + printable(process.name)}}}});
    for (uint32_t i = 0; i < trace_.threads.size(); ++i) {
      Json name = {{"ph", "M"}, {"name", "thread_name"}};
      add_row(name, i);
      name["args"] = {{"name", printable(told(trace_.threads[i].name))}};
      list_.write(name);
      Json order = {{"ph", "M"}, {"name", "thread_sort_index"}};
      add_row(order, i);
      order["args"] = {{"sort_index", i}};
      list_.write(order);
    }
  }

  Json call_span(const TracedCall& call) const {
    const TracedSite* site = call.site < trace_.sites.size() ? &trace_.sites[call.site] : nullptr;
    Json json = {{"ph", "X"},
                 {"name", name_of(call, site)},
                 {"cat", call.is_intervention ? "intervention"
                         : site               ? site->group
                                              : "?"}};
    add_row(json, call.thread);
    json["ts"] = call.enter.count();
    json["dur"] = (call.exit - call.enter).count();
    json["args"] = details(call, site);
    return json;
  }

  static std::string name_of(const TracedCall& call, const TracedSite* site) {
    if (!site) return "?";
    const std::string name = site->name.api.empty() ? to_string(site->name) : site->name.api;
    if (!call.is_intervention) return printable(name);
    const bool is_hold = call.object != 0;
    return printable((is_hold ? "wait for another thread at " : "delay before or after ") + name);
  }

  Json details(const TracedCall& call, const TracedSite* site) const {
    Json args;
    if (site) args["site"] = printable(to_string(site->name));
    if (site) args["location"] = printable(site->location);
    if (const Frame* caller = caller_past(trace_, call, wrappers_))
      args["for"] = printable(location_of(*caller));
    args["object"] = fmt::format("{:#x}", call.object);
    if (call.value >= 0) args["value"] = call.value;
    args["result"] = call.result;
    for (const auto& [set, name] :
         {std::pair(call.timed_out, "timed_out"), std::pair(call.delayed, "delayed"),
          std::pair(call.replaced, "replaced"), std::pair(call.unfinished, "unfinished")})
      if (set) args[name] = true;
    if (call.stack < trace_.stacks.size()) args["stack"] = lines_of(trace_.stacks[call.stack]);
    return args;
  }

  Json lines_of(const TracedStack& stack) const {
    Json lines = Json::array();
    const std::string text = stack_text(stack, trace_.images, StackDetail::full, most_frames);
    for (const std::string_view line : split_lines(text)) lines.push_back(std::string(trim(line)));
    return lines;
  }

  Json failure_mark(const TracedFailure& failure) const {
    Json json = {{"ph", "i"}, {"name", failure_line(failure, trace_)}, {"cat", "failure"}};
    add_row(json, failure.thread);
    json["ts"] = failure.at.count();
    json["s"] = "g";  // drawn through all rows
    json["args"] = {{"stack", lines_of(failure.stack)}};
    return json;
  }

  const Trace& trace_;
  const Wrappers wrappers_;
  SpanList& list_;
  const std::string prefix_;
  const int first_pid_;
};

}  // namespace

void write_chrome_trace(const Trace& trace, Sink& sink) {
  SpanList list(sink);
  Writer writer(trace, list);
  writer();
  list.end(writer.losses());
}

void write_chrome_traces(const std::vector<NamedTrace>& runs, Sink& sink) {
  SpanList list(sink);
  Json losses = {{"format", 1}, {"runs", Json::object()}};
  for (size_t i = 0; i < runs.size(); ++i) {
    Writer writer(*runs[i].trace, list, runs[i].name + ": ", static_cast<int>(i + 1) * most_pids);
    writer();
    losses["runs"][runs[i].name] = writer.losses();
  }
  list.end(losses);
}

}  // namespace unflake
