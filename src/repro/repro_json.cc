#include "repro/repro_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

using nlohmann::json;

std::optional<std::string> from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* from = digits.data() + i;
    if (i + 2 > digits.size() || std::from_chars(from, from + 2, value, 16).ptr != from + 2)
      return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::optional<std::string> text_in(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto hex = value.is_object() ? value.find("hex") : value.end();
  if (!value.is_object() || hex == value.end() || !hex->is_string()) return std::nullopt;
  return from_hex(hex->get_ref<const std::string&>());
}

}  // namespace

nlohmann::ordered_json text_to_json(const std::string& text) {
  if (is_utf8(text)) return text;
  return {{"hex", hexadecimal(text)}};
}

void JsonField::complain(std::string what, std::string next) const {
  if (!wrong_) wrong_ = Wrong{std::move(what), path_, std::move(next)};
}

void JsonField::is_no(std::string_view type) const {
  if (value_) complain(fmt::format("this is not {}", type));
}

JsonField JsonField::operator[](const char* key) const {
  const std::string path = path_ + "." + key;
  if (!value_) return {nullptr, path, wrong_};
  if (!value_->is_object()) {
    is_no("an object");
    return {nullptr, path, wrong_};
  }
  const auto found = value_->find(key);
  if (found != value_->end()) return {&*found, path, wrong_};
  const JsonField missing{nullptr, path, wrong_};
  missing.complain("this member is missing");
  return missing;
}

bool JsonField::has(const char* key) const {
  return value_ && value_->is_object() && value_->contains(key);
}

void JsonField::allow_only(const std::vector<std::string_view>& keys) const {
  if (!value_ || !value_->is_object()) return is_no("an object");
  for (const auto& [key, value] : value_->items())
    if (std::ranges::find(keys, key) == keys.end())
      return complain(fmt::format("there is no member '{}' here", printable(shorten(key, 100))),
                      "choose from " + join({keys.begin(), keys.end()}, ", "));
}

std::string JsonField::text(size_t most) const {
  if (!value_) return "";
  auto text = text_in(*value_);
  if (!text) {
    is_no("a text");
    return "";
  }
  if (text->size() > most) {
    complain(fmt::format("this text is longer than {} bytes", most));
    return "";
  }
  return std::move(*text);
}

bool JsonField::flag() const {
  if (value_ && value_->is_boolean()) return value_->get<bool>();
  is_no("true or false");
  return false;
}

int64_t JsonField::whole(int64_t low, int64_t high) const {
  if (!value_) return low;
  const bool is_large = value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX;
  if (!value_->is_number_integer() || is_large) {
    is_no("a whole number that can be used here");
    return low;
  }
  const auto number = value_->get<int64_t>();
  if (number >= low && number <= high) return number;
  complain(fmt::format("{} is out of range", number), fmt::format("give {} to {}", low, high));
  return low;
}

double JsonField::real(double low, double high) const {
  if (!value_) return high;
  if (!value_->is_number()) {
    is_no("a number");
    return high;
  }
  const auto number = value_->get<double>();
  if (number >= low && number <= high) return number;
  complain(fmt::format("{} is out of range", number), fmt::format("give {} to {}", low, high));
  return high;
}

Duration JsonField::duration(Duration low, Duration high) const {
  if (!value_) return low;
  const std::string written = text(100);
  const auto duration = parse_duration_with_unit(written);
  if (!duration) {
    complain(duration.error().what, duration.error().next);
    return low;
  }
  if (*duration >= low && *duration <= high) return *duration;
  complain(fmt::format("{} is out of range", printable(written)),
           fmt::format("give {} to {}", duration_word(low), duration_word(high)));
  return low;
}

size_t JsonField::choice(std::initializer_list<std::string_view> words) const {
  if (!value_) return 0;
  const std::string chosen = text(1000);
  const auto found = std::ranges::find(words, chosen);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  complain(fmt::format("'{}' is not known here", printable(shorten(chosen, 100))),
           "choose from " + join({words.begin(), words.end()}, ", "));
  return 0;
}

std::vector<JsonField> JsonField::items(size_t most) const {
  std::vector<JsonField> all;
  if (!value_ || !value_->is_array()) {
    is_no("a list");
    return all;
  }
  if (value_->size() > most) {
    complain(fmt::format("these are {} and at most {} can be used", value_->size(), most));
    return all;
  }
  for (size_t i = 0; i < value_->size(); ++i)
    all.push_back({&(*value_)[i], fmt::format("{}[{}]", path_, i), wrong_});
  return all;
}

std::vector<std::string> JsonField::texts(size_t most, size_t longest) const {
  std::vector<std::string> all;
  for (const JsonField& item : items(most)) all.push_back(item.text(longest));
  return all;
}

namespace {

using Json = nlohmann::ordered_json;
using Action = Intervention::Action;
using Position = Intervention::Position;
using Visits = Intervention::Visits;

std::string_view word_of(Action action) {
  switch (action) {
    case Action::delay:
      return "delay";
    case Action::hold:
      return "hold";
    case Action::replace_time:
      return "replace_time";
    case Action::watch:
      return "watch";
    case Action::scale_time:
      return "scale_time";
  }
  return "?";
}

std::string_view word_of(Position position) {
  switch (position) {
    case Position::before:
      return "before";
    case Position::after:
      return "after";
    case Position::start:
      return "start";
  }
  return "?";
}

std::string_view word_of(Visits visits) {
  switch (visits) {
    case Visits::every:
      return "every";
    case Visits::only_nth:
      return "only_nth";
    case Visits::from_nth:
      return "from_nth";
    case Visits::halving:
      return "halving";
  }
  return "?";
}

Json texts(const std::vector<std::string>& all) {
  Json list = Json::array();
  for (const std::string& text : all) list.push_back(text_to_json(text));
  return list;
}

Json to_json(const Failure& failure) {
  return {{"kind", to_string(failure.kind)},
          {"file", text_to_json(failure.file)},
          {"line", failure.line},
          {"function", text_to_json(failure.function)},
          {"expression", text_to_json(failure.expression)},
          {"message", text_to_json(failure.message)}};
}

void add_context(Json& json, const char* key, const SiteContext& context) {
  if (context == SiteContext()) return;
  json[key] = {{"function", text_to_json(context.function)},
               {"lines_into_function", context.lines_into_function},
               {"text", text_to_json(context.text)},
               {"text_before", text_to_json(context.text_before)},
               {"text_after", text_to_json(context.text_after)}};
}

Json to_json(const Intervention& what) {
  Json json = {{"action", word_of(what.action)},
               {"site", text_to_json(to_string(what.site))},
               {"position", word_of(what.position)}};
  if (what.threads != Intervention::Threads::any) json["thread"] = text_to_json(thread_text(what));
  if (!what.thread.role.empty()) json["thread_role"] = text_to_json(what.thread.role);
  if (!what.executable.empty()) json["executable"] = text_to_json(what.executable);
  if (what.action != Action::watch) json["duration"] = duration_word(what.duration);
  json["visits"] = word_of(what.visits);
  if (what.visits == Visits::only_nth || what.visits == Visits::from_nth) json["nth"] = what.nth;
  if (what.anchor) json["anchor"] = *what.anchor;
  if (what.until) json["until"] = *what.until;
  if (what.action == Action::hold) json["count"] = what.count;
  return json;
}

Json interventions(const Repro& repro) {
  Json all = Json::array();
  for (size_t i = 0; i < repro.plan.interventions.size(); ++i) {
    Json json = to_json(repro.plan.interventions[i]);
    if (i < repro.sites.size()) add_context(json, "source", repro.sites[i]);
    if (i < repro.spawns.size()) add_context(json, "thread_source", repro.spawns[i]);
    all.push_back(std::move(json));
  }
  return all;
}

// Numbers of 64 bits are texts: many readers of JSON round them.
Json numbers(const std::vector<uint64_t>& all) {
  Json list = Json::array();
  for (const uint64_t number : all) list.push_back(std::to_string(number));
  return list;
}

Json schedule_json(const Repro& repro) {
  const Schedule& schedule = *repro.plan.schedule;
  Json json = {{"sampler", to_string(schedule.sampler)},
               {"seed", std::to_string(schedule.seed)},
               {"stall", duration_word(schedule.stall)}};
  json["decisions"] = Json::array();
  for (const Decision& decision : schedule.decisions)
    json["decisions"].push_back({{"point", decision.point}, {"thread", decision.thread}});
  json["accesses"] = Json::array();
  for (const SiteName& site : schedule.accesses)
    json["accesses"].push_back(text_to_json(to_string(site)));
  if (schedule.sampler != Sampler::stay) {
    json["depth"] = schedule.depth;
    json["length"] = std::to_string(schedule.length);
    json["selected"] = numbers(schedule.selected);
    json["remaining"] = numbers(schedule.remaining);
  }
  json["digest"] = std::to_string(repro.digest);
  return json;
}

Json plan_json(const Repro& repro) {
  const Plan& plan = repro.plan;
  Json json = {{"id", text_to_json(plan.id)},
               {"hold_exit", plan.hold_exit},
               {"system_calls", plan.system_calls},
               {"groups_off", texts(plan.groups_off)},
               {"extra_functions", texts(plan.extra_functions)},
               {"interventions", interventions(repro)}};
  if (plan.schedule) json["schedule"] = schedule_json(repro);
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const Count& count) {
  Json json = {{"failures", count.hits}, {"runs", count.runs}};
  if (count.runs <= 0) return json;
  const Interval interval = count.interval();
  json["rate"] = static_cast<double>(count.hits) / count.runs;
  json["interval_95"] = {interval.low, interval.high};
  return json;
}

namespace {

Json measured(const Repro& repro) {
  Json json = {{"with_plan", to_json(repro.with_plan)},
               {"without_plan", to_json(repro.without_plan)},
               {"candidates", repro.candidates}};
  if (repro.under_control) json["under_control"] = to_json(*repro.under_control);
  if (repro.slack)
    json["slack"] = {{"passes", duration_word(repro.slack->passes)},
                     {"fails", duration_word(repro.slack->fails)}};
  json["doses"] = Json::array();
  for (const Dose& dose : repro.doses) {
    Json one = {{"delay", duration_word(dose.delay)}};
    one.update(to_json(dose.failures));
    json["doses"].push_back(std::move(one));
  }
  if (repro.plausibility) json["plausibility"] = to_string(*repro.plausibility);
  if (repro.machine_lateness)
    json["machine_lateness"] = {{"plain", duration_word(repro.machine_lateness->plain)},
                                {"scarce", duration_word(repro.machine_lateness->scarce)}};
  json["was_seen"] = repro.was_seen;
  if (!repro.not_repeatable.empty()) json["not_repeatable"] = text_to_json(repro.not_repeatable);
  return json;
}

std::string_view word_of(Arrangement::Kind kind) {
  switch (kind) {
    case Arrangement::Kind::listed:
      return "listed";
    case Arrangement::Kind::reversed:
      return "reversed";
    case Arrangement::Kind::by_name:
      return "by_name";
    case Arrangement::Kind::shuffled:
      return "shuffled";
  }
  return "?";
}

Json order_json(const RecordedOrder& order) {
  Json json = {{"before", texts(order.before)},
               {"arrangement", word_of(order.arrangement.kind)},
               {"seed", order.arrangement.seed},
               {"state_setters", texts(order.state_setters)},
               {"cleaners", Json::array()}};
  for (const RecordedCleaner& cleaner : order.cleaners)
    json["cleaners"].push_back({{"name", text_to_json(cleaner.name)},
                                {"file", text_to_json(cleaner.file)},
                                {"first_line", cleaner.first_line},
                                {"last_line", cleaner.last_line},
                                {"body", texts(cleaner.body)}});
  return json;
}

Json found(const Repro& repro) {
  const auto at = std::chrono::system_clock::to_time_t(repro.found);
  return {{"at", fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(at))},
          {"strategy", text_to_json(repro.strategy)},
          {"reason", text_to_json(repro.reason)},
          {"seed", std::to_string(repro.seed)},
          {"search_runs", repro.search_runs},
          {"commit", text_to_json(repro.commit)},
          {"machine", text_to_json(repro.machine)},
          {"unflake_version", text_to_json(repro.unflake_version)}};
}

}  // namespace

std::string thread_text(const Intervention& intervention) {
  const std::string& text = intervention.thread.text;
  if (intervention.threads != Intervention::Threads::in_class) return text;
  return thread_class_of(text) + "#*";
}

std::string repro_json(const Repro& repro) {
  return json_text(repro_document(repro), 1) + "\n";
}

nlohmann::ordered_json repro_document(const Repro& repro) {
  Json json = {{"format", repro_format},
               {"test",
                {{"target", text_to_json(repro.test.target)},
                 {"name", text_to_json(repro.test.name)},
                 {"framework", to_string(repro.framework)},
                 {"path", text_to_json(repro.target_path)},
                 {"arguments", texts(repro.target_argv)}}},
               {"outcome", to_string(repro.outcome)},
               {"signature", repro.signature},
               {"failure", to_json(repro.failure)}};
  add_context(json["failure"], "source", repro.failing_line);
  json["plan"] = plan_json(repro);
  json["conditions"] = json_of<Json>(repro.conditions);
  if (repro.order) json["order"] = order_json(*repro.order);
  if (!repro.factor.empty()) json["factor"] = text_to_json(repro.factor);
  json["timeout"] = duration_word(repro.timeout);
  json["passes_under_plan"] = repro.passes_under_plan;
  json["measured"] = measured(repro);
  json["found"] = found(repro);
  return json;
}

}  // namespace unflake
