#include "report/trace_json.h"

#include <fmt/format.h>

#include "util/hexadecimal.h"
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
    if (thread.events_dropped > 0) json["events_dropped"] = thread.events_dropped;
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

Json events(const Trace& trace) {
  Json all = Json::array();
  for (const TracedEvent& event : trace.events) {
    Json json = {{"thread", event.thread},
                 {"site", event.site},
                 {"enter_us", event.enter.count()},
                 {"exit_us", event.exit.count()},
                 {"object", fmt::format("{:#x}", event.object)},
                 {"result", event.result}};
    if (event.value >= 0) json["value"] = event.value;
    if (event.stack != no_index) json["stack"] = event.stack;
    for (const auto& [set, name] :
         {std::pair(event.timed_out, "timed_out"), std::pair(event.delayed, "delayed"),
          std::pair(event.replaced, "replaced"), std::pair(event.unfinished, "unfinished"),
          std::pair(event.is_intervention, "is_intervention")})
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
                   {"name", printable(function.name)}});
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

std::string trace_json(const Test& test, const ExperimentResult& result) {
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
  json["events"] = events(trace);
  json["failures"] = failures(trace);
  json["functions"] = functions(trace);
  json.update(losses(trace));
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
