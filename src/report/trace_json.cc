#include "report/trace_pages.h"

#include <fmt/format.h>

#include "model/executed.h"
#include "report/patch_file.h"
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

using Json = nlohmann::ordered_json;

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
      {"late", late(found.late)},
      {"story", words.story},
      {"figures", words.figures},
      {"plan", words.plan},
      {"notes", words.notes}};
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
