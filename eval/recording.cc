#include <algorithm>
#include <iterator>
#include <limits>

#include "protocol/agent_protocol.h"
#include "recording.h"
#include "repro/repro_json.h"

namespace unflake::eval {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format = 1;
constexpr size_t most_items = 1'000'000;
constexpr size_t longest_text = 100'000;
constexpr int64_t most_us = 1'000'000'000'000;

Json index(uint32_t number) {
  return number == no_index ? Json(-1) : Json(number);
}

uint32_t index(const JsonField& field) {
  const int64_t number = field.whole(-1, no_index - 1);
  return number < 0 ? no_index : static_cast<uint32_t>(number);
}

Duration time(const JsonField& field) {
  return Duration(field.whole(0, most_us));
}

int number(const JsonField& field) {
  return static_cast<int>(
      field.whole(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

int64_t any_number(const JsonField& field) {
  return field.whole(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

Json to_json(const TracedImage& image) {
  return {{"path", text_to_json(image.path)}};
}

Json to_json(const TracedProcess& process) {
  return {{"pid", process.pid},
          {"parent", index(process.parent)},
          {"executable", index(process.executable)}};
}

Json to_json(const TracedThread& thread) {
  return {{"process", index(thread.process)},
          {"parent", index(thread.parent)},
          {"name", text_to_json(thread.name.text)},
          {"started_us", thread.started.count()},
          {"ended_us", thread.ended.count()}};
}

Json to_json(const TracedSite& site) {
  return {{"image", text_to_json(site.name.image)},
          {"file", text_to_json(site.name.file)},
          {"line", site.name.line},
          {"function", text_to_json(site.name.function)},
          {"offset", static_cast<int64_t>(site.name.offset)},
          {"api", text_to_json(site.name.api)},
          {"nth", site.name.nth},
          {"group", text_to_json(site.group)}};
}

Json to_json(const TracedCall& call) {
  return {{"thread", index(call.thread)},
          {"site", index(call.site)},
          {"enter_us", call.enter.count()},
          {"exit_us", call.exit.count()},
          {"object", static_cast<int64_t>(call.object)},
          {"value", call.value},
          {"result", call.result},
          {"timed_out", call.timed_out},
          {"unfinished", call.unfinished},
          {"is_intervention", call.is_intervention}};
}

Json to_json(const Tried& tried) {
  return {{"delay", text_to_json(tried.delay)}, {"runs", tried.runs}, {"hits", tried.hits}};
}

template <class Item>
Json list(const std::vector<Item>& items) {
  Json all = Json::array();
  for (const Item& item : items) all.push_back(to_json(item));
  return all;
}

// The number is the one of this build, in which the list of APIs may be another.
uint16_t api_number(const std::string& name) {
  const auto found =
      std::ranges::find_if(protocol::api_facts, [&](const auto& api) { return api.name == name; });
  return static_cast<uint16_t>(found - std::begin(protocol::api_facts));
}

void read(const JsonField& json, TracedImage& image) {
  image.path = json["path"].text(longest_text);
}

void read(const JsonField& json, TracedProcess& process) {
  process.pid = number(json["pid"]);
  process.parent = index(json["parent"]);
  process.executable = index(json["executable"]);
}

void read(const JsonField& json, TracedThread& thread) {
  thread.process = index(json["process"]);
  thread.parent = index(json["parent"]);
  thread.name.text = json["name"].text(longest_text);
  thread.started = time(json["started_us"]);
  thread.ended = time(json["ended_us"]);
}

void read(const JsonField& json, TracedSite& site) {
  site.name.image = json["image"].text(longest_text);
  site.name.file = json["file"].text(longest_text);
  site.name.line = number(json["line"]);
  site.name.function = json["function"].text(longest_text);
  site.name.offset = static_cast<uint64_t>(any_number(json["offset"]));
  site.name.api = json["api"].text(longest_text);
  site.name.nth = number(json["nth"]);
  site.group = json["group"].text(longest_text);
  site.api = api_number(site.name.api);
}

void read(const JsonField& json, TracedCall& call) {
  call.thread = index(json["thread"]);
  call.site = index(json["site"]);
  call.enter = time(json["enter_us"]);
  call.exit = time(json["exit_us"]);
  call.object = static_cast<uint64_t>(any_number(json["object"]));
  call.value = any_number(json["value"]);
  call.result = number(json["result"]);
  call.timed_out = json["timed_out"].flag();
  call.unfinished = json["unfinished"].flag();
  call.is_intervention = json["is_intervention"].flag();
}

void read(const JsonField& json, Tried& tried) {
  tried.delay = json["delay"].text(longest_text);
  tried.runs = number(json["runs"]);
  tried.hits = number(json["hits"]);
}

template <class Item>
std::vector<Item> items(const JsonField& json) {
  std::vector<Item> all;
  for (const JsonField& field : json.items(most_items)) read(field, all.emplace_back());
  return all;
}

Recording read_recording(const JsonField& json) {
  json["format"].whole(format, format);
  Recording recording;
  recording.program = json["program"].text(longest_text);
  recording.failure.thread = index(json["failure"]["thread"]);
  recording.failure.at = time(json["failure"]["at_us"]);
  recording.failure.how = json["failure"]["how"].text(longest_text);
  recording.limits.least = time(json["limits"]["least_us"]);
  recording.limits.most = time(json["limits"]["most_us"]);
  recording.limits.cheap = time(json["limits"]["cheap_us"]);
  const JsonField trace = json["trace"];
  recording.trace.images = items<TracedImage>(trace["images"]);
  recording.trace.processes = items<TracedProcess>(trace["processes"]);
  recording.trace.threads = items<TracedThread>(trace["threads"]);
  recording.trace.sites = items<TracedSite>(trace["sites"]);
  recording.trace.calls = items<TracedCall>(trace["events"]);
  recording.tried = items<Tried>(json["tried"]);
  return recording;
}

}  // namespace

std::string key_of(const Intervention& delay) {
  return to_string(delay) + " in " + delay.executable;
}

std::string recording_json(const Recording& recording) {
  const Trace& trace = recording.trace;
  const Json json = {{"format", format},
                     {"program", text_to_json(recording.program)},
                     {"failure",
                      {{"thread", index(recording.failure.thread)},
                       {"at_us", recording.failure.at.count()},
                       {"how", text_to_json(recording.failure.how)}}},
                     {"limits",
                      {{"least_us", recording.limits.least.count()},
                       {"most_us", recording.limits.most.count()},
                       {"cheap_us", recording.limits.cheap.count()}}},
                     {"tried", list(recording.tried)},
                     {"trace",
                      {{"images", list(trace.images)},
                       {"processes", list(trace.processes)},
                       {"threads", list(trace.threads)},
                       {"sites", list(trace.sites)},
                       {"events", list(trace.calls)}}}};
  return json_text(json, 1) + "\n";
}

Result<Recording> parse_recording(const std::string& text, const std::string& path) {
  const auto json = parse_json(text);
  if (json.is_discarded())
    return usage_error("this is not JSON", path, "record it again with `rank_orders record`");
  std::optional<JsonField::Wrong> wrong;
  Recording recording = read_recording(JsonField(json, wrong));
  if (wrong) return usage_error(wrong->what, path + ": " + wrong->where, wrong->next);
  return recording;
}

}  // namespace unflake::eval
