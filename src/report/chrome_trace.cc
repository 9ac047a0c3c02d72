#include "report/trace_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/trace_text.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

// Keys in the order in which they are set: stable files, and "ph" where people look for it.
using Json = nlohmann::ordered_json;

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
      : trace_(trace), list_(list), prefix_(std::move(prefix)), first_pid_(first_pid) {}

  void operator()() {
    write_names();
    for (const TracedCall& call : trace_.calls) list_.write(call_span(call));
    for (const TracedFailure& failure : trace_.failures) list_.write(failure_mark(failure));
  }

  Json losses() const {
    Json json = {{"format", 1}, {"drops", Json::object()}, {"problems", Json::array()}};
    for (const Drops& drops : trace_.drops) json["drops"][drops.what] = drops.count;
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
      name["args"] = {{"name", printable(trace_.threads[i].name.text)}};
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
