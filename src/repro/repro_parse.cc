#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

#include "repro/repro_json.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Action = Intervention::Action;
using Position = Intervention::Position;
using Threads = Intervention::Threads;
using Visits = Intervention::Visits;

constexpr size_t longest_text = 64 << 10;
constexpr size_t most_interventions = 1000;
constexpr size_t most_entries = 10'000;
constexpr int deepest = 16;
constexpr int most_runs = 1'000'000'000;
constexpr int64_t most_visits = 1'000'000'000'000;
constexpr int64_t most_threads = 1'000'000;
constexpr Duration longest_duration = 1h;
constexpr Duration longest_timeout = 24h;

std::string make_again(const FileKind& kind) {
  return fmt::format("correct it, or write it again with `{}`", kind.command);
}

template <class Kind>
Kind kind_in(const JsonField& field, std::optional<Kind> (*kind_from)(std::string_view)) {
  const std::string name = field.text(100);
  const auto kind = kind_from(name);
  if (!kind) field.complain(fmt::format("'{}' is not known here", printable(shorten(name, 100))));
  return kind.value_or(Kind{});
}

Framework framework_in(const JsonField& field) {
  const std::string name = field.text(100);
  const auto framework = framework_from(name);
  if (!framework)
    field.complain(fmt::format("there is no framework '{}'", printable(shorten(name, 100))));
  return framework.value_or(Framework::command);
}

SiteContext context_in(const JsonField& parent, const char* key) {
  SiteContext context;
  if (!parent.has(key)) return context;
  const JsonField field = parent[key];
  context.function = field["function"].text(longest_text);
  context.lines_into_function = static_cast<int>(field["lines_into_function"].whole(-1, INT32_MAX));
  context.text = field["text"].text(longest_text);
  context.text_before = field["text_before"].text(longest_text);
  context.text_after = field["text_after"].text(longest_text);
  return context;
}

Failure failure_in(const JsonField& field) {
  Failure failure;
  failure.kind = kind_in(field["kind"], failure_kind_from);
  failure.file = field["file"].text(longest_text);
  failure.line = static_cast<int>(field["line"].whole(0, INT32_MAX));
  failure.function = field["function"].text(longest_text);
  failure.expression = field["expression"].text(longest_text);
  failure.message = field["message"].text(longest_text);
  return failure;
}

std::string signature_in(const JsonField& field) {
  const std::string signature = field.text(100);
  const bool is_hex = signature.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (signature.size() != 16 || !is_hex)
    field.complain("a signature has 16 hexadecimal digits", "copy it from `unflake history`");
  return signature;
}

}  // namespace

SiteName site_in(const JsonField& field, const SiteContext& context) {
  auto site = parse_site(field.text(longest_text));
  if (!site) {
    field.complain(site.error().what, site.error().next);
    return {};
  }
  if (!site->file.empty()) site->function = context.function;  // which its name leaves out
  return std::move(*site);
}

namespace {

void read_thread(const JsonField& field, Intervention& what) {
  what.thread.text = field.text(longest_text);
  if (what.thread.text.empty())
    field.complain("this names no thread", "leave it out where any thread is meant");
  what.threads = what.thread.text.ends_with("#*") ? Threads::in_class : Threads::named;
}

void read_visits(const JsonField& field, Intervention& what) {
  constexpr std::array kinds{Visits::every, Visits::only_nth, Visits::from_nth, Visits::halving};
  what.visits = kinds[field["visits"].choice({"every", "only_nth", "from_nth", "halving"})];
  if (what.visits == Visits::only_nth || what.visits == Visits::from_nth)
    what.nth = static_cast<uint64_t>(field["nth"].whole(1, most_visits));
}

Intervention intervention_in(const JsonField& field, const SiteContext& context) {
  field.allow_only({"action", "site", "position", "thread", "executable", "duration", "visits",
                    "nth", "anchor", "until", "count", "source", "thread_source", "thread_role"});
  constexpr std::array actions{Action::delay, Action::hold, Action::replace_time, Action::watch,
                               Action::scale_time};
  constexpr std::array positions{Position::before, Position::after, Position::start};
  Intervention what;
  what.action =
      actions[field["action"].choice({"delay", "hold", "replace_time", "watch", "scale_time"})];
  what.site = site_in(field["site"], context);
  what.position = positions[field["position"].choice({"before", "after", "start"})];
  if (field.has("thread")) read_thread(field["thread"], what);
  if (field.has("thread_role")) what.thread.role = field["thread_role"].text(longest_text);
  if (field.has("executable")) what.executable = field["executable"].text(longest_text);
  if (what.action != Action::watch)
    what.duration = field["duration"].duration(Duration::zero(), longest_duration);
  read_visits(field, what);
  const auto index = [&](const char* key) {
    return static_cast<size_t>(field[key].whole(0, most_interventions));
  };
  if (field.has("anchor")) what.anchor = index("anchor");
  if (field.has("until") || what.action == Action::hold) what.until = index("until");
  if (what.action == Action::hold)
    what.count = static_cast<uint64_t>(field["count"].whole(1, most_visits));
  return what;
}

// What an intervention waits for, or counts from, is a watch of the same plan.
void check_links(const std::vector<JsonField>& fields, const std::vector<Intervention>& all) {
  const auto check = [&](size_t i, const std::optional<size_t>& index, const char* key) {
    if (!index) return;
    if (*index >= all.size() || all[*index].action != Action::watch)
      fields[i][key].complain(fmt::format("intervention {} is not a watch of this plan", *index),
                              "give the number of a watch, counted from 0");
  };
  for (size_t i = 0; i < all.size(); ++i) {
    check(i, all[i].anchor, "anchor");
    check(i, all[i].until, "until");
  }
}

uint64_t number_in(const JsonField& field) {
  const std::string text = field.text(100);
  uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size())
    field.complain("this is not a whole number of 64 bits");
  return number;
}

std::vector<uint64_t> numbers_in(const JsonField& field) {
  std::vector<uint64_t> all;
  for (const JsonField& one : field.items(most_entries)) all.push_back(number_in(one));
  return all;
}

Sampler sampler_in(const JsonField& field) {
  const std::string name = field.text(100);
  const auto sampler = sampler_from(name);
  if (!sampler)
    field.complain(fmt::format("there is no sampler '{}'", printable(shorten(name, 100))));
  return sampler.value_or(Sampler::stay);
}

Schedule schedule_in(const JsonField& field) {
  field.allow_only({"sampler", "seed", "stall", "decisions", "accesses", "depth", "length",
                    "selected", "remaining", "digest"});
  Schedule schedule;
  schedule.sampler = sampler_in(field["sampler"]);
  schedule.seed = number_in(field["seed"]);
  schedule.stall = field["stall"].duration(Duration::zero(), longest_duration);
  for (const JsonField& one : field["decisions"].items(most_entries))
    schedule.decisions.push_back({static_cast<uint64_t>(one["point"].whole(0, most_visits)),
                                  static_cast<ThreadNumber>(one["thread"].whole(0, most_threads))});
  for (const JsonField& one : field["accesses"].items(most_entries))
    schedule.accesses.push_back(site_in(one, {}));
  if (schedule.sampler == Sampler::stay) return schedule;
  schedule.depth = static_cast<int>(field["depth"].whole(1, 100));
  schedule.length = number_in(field["length"]);
  schedule.selected = numbers_in(field["selected"]);
  schedule.remaining = numbers_in(field["remaining"]);
  return schedule;
}

void read_plan(const JsonField& field, Repro& repro) {
  field.allow_only({"id", "hold_exit", "system_calls", "groups_off", "extra_functions",
                    "interventions", "schedule"});
  Plan& plan = repro.plan;
  plan.agent = true;
  plan.id = field["id"].text(longest_text);
  plan.hold_exit = field["hold_exit"].flag();
  plan.system_calls = field["system_calls"].flag();
  plan.groups_off = field["groups_off"].texts(100, 100);
  plan.extra_functions = field["extra_functions"].texts(most_interventions, longest_text);
  const auto interventions = field["interventions"].items(most_interventions);
  for (const JsonField& one : interventions) {
    repro.sites.push_back(context_in(one, "source"));
    repro.spawns.push_back(context_in(one, "thread_source"));
    plan.interventions.push_back(intervention_in(one, repro.sites.back()));
  }
  check_links(interventions, plan.interventions);
  if (!field.has("schedule")) return;
  plan.schedule = schedule_in(field["schedule"]);
  repro.digest = number_in(field["schedule"]["digest"]);
}

Conditions conditions_in(const JsonField& field) {
  Conditions conditions;
  std::vector<std::string_view> names;
  for_each_field(conditions,
                 [&](const ConditionField& known, auto) { names.push_back(known.name); });
  field.allow_only(names);
  for_each_field(conditions, [&](const ConditionField& known, auto& value) {
    if (known.is_rare && !field.has(known.name)) return;
    const JsonField found = field[known.name];
    if constexpr (std::is_same_v<decltype(value), bool&>)
      value = found.flag();
    else if constexpr (std::is_same_v<decltype(value), std::string&>)
      value = found.text(static_cast<size_t>(known.most));
    else if constexpr (std::is_same_v<decltype(value), double&>)
      value = found.real(known.least, known.most);
    else
      value = static_cast<int>(
          found.whole(static_cast<int>(known.least), static_cast<int>(known.most)));
  });
  return conditions;
}

RecordedOrder order_in(const JsonField& field) {
  using Kind = Arrangement::Kind;
  constexpr std::array kinds{Kind::listed, Kind::reversed, Kind::by_name, Kind::shuffled};
  field.allow_only({"before", "arrangement", "seed", "state_setters", "cleaners"});
  RecordedOrder order;
  order.before = field["before"].texts(most_entries, longest_text);
  order.arrangement = {
      kinds[field["arrangement"].choice({"listed", "reversed", "by_name", "shuffled"})],
      static_cast<uint32_t>(field["seed"].whole(0, UINT32_MAX))};
  order.state_setters = field["state_setters"].texts(most_entries, longest_text);
  for (const JsonField& one : field["cleaners"].items(most_entries)) {
    const auto line = [&](const char* key) {
      return static_cast<int>(one[key].whole(0, INT32_MAX));
    };
    order.cleaners.push_back({one["name"].text(longest_text), one["file"].text(longest_text),
                              line("first_line"), line("last_line"),
                              one["body"].texts(most_interventions, longest_text)});
  }
  return order;
}

}  // namespace

Count count_in(const JsonField& field) {
  const auto runs = static_cast<int>(field["runs"].whole(0, most_runs));
  return {.hits = static_cast<int>(field["failures"].whole(0, runs)), .runs = runs};
}

namespace {

void read_measured(const JsonField& field, Repro& repro) {
  repro.with_plan = count_in(field["with_plan"]);
  repro.without_plan = count_in(field["without_plan"]);
  if (field.has("under_control")) repro.under_control = count_in(field["under_control"]);
  repro.candidates = static_cast<int>(field["candidates"].whole(0, most_runs));
  const auto delay = [](const JsonField& from) {
    return from.duration(Duration::zero(), longest_duration);
  };
  if (field.has("slack"))
    repro.slack = Slack{delay(field["slack"]["passes"]), delay(field["slack"]["fails"])};
  for (const JsonField& dose : field["doses"].items(most_entries))
    repro.doses.push_back({delay(dose["delay"]), count_in(dose)});
  if (field.has("plausibility"))
    repro.plausibility = kind_in(field["plausibility"], plausibility_from);
  if (field.has("machine_lateness"))
    repro.machine_lateness = MachineLateness{delay(field["machine_lateness"]["plain"]),
                                             delay(field["machine_lateness"]["scarce"])};
  if (field.has("was_seen")) repro.was_seen = field["was_seen"].flag();
  if (field.has("not_repeatable"))
    repro.not_repeatable = field["not_repeatable"].text(longest_text);
}

std::chrono::system_clock::time_point time_in(const JsonField& field) {
  using namespace std::chrono;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, end = 0;
  const std::string text = field.text(100);
  const int read =
      std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &y, &mo, &d, &h, &mi, &s, &end);
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)),
                            day(static_cast<unsigned>(d))};
  const bool is_time = read == 6 && end == static_cast<int>(text.size()) && date.ok() &&
                       y >= 1970 && h >= 0 && h < 24 && mi >= 0 && mi < 60 && s >= 0 && s <= 60;
  if (is_time) return sys_days(date) + hours(h) + minutes(mi) + seconds(s);
  field.complain("this is not a time", "write it as 2026-03-01T12:00:00Z");
  return {};
}

void read_found(const JsonField& field, Repro& repro) {
  repro.found = time_in(field["at"]);
  repro.strategy = field["strategy"].text(longest_text);
  repro.reason = field["reason"].text(longest_text);
  repro.seed = number_in(field["seed"]);
  repro.search_runs = static_cast<int>(field["search_runs"].whole(0, most_runs));
  repro.commit = field["commit"].text(longest_text);
  repro.machine = field["machine"].text(longest_text);
  repro.unflake_version = field["unflake_version"].text(longest_text);
}

void read_test(const JsonField& field, Repro& repro) {
  repro.test = {field["target"].text(longest_text), field["name"].text(longest_text)};
  repro.framework = framework_in(field["framework"]);
  repro.target_path = field["path"].text(longest_text);
  repro.target_argv = field["arguments"].texts(most_entries, longest_text);
}

}  // namespace

Repro repro_in(const JsonField& field) {
  Repro repro;
  read_test(field["test"], repro);
  repro.outcome = kind_in(field["outcome"], outcome_kind_from);
  repro.signature = signature_in(field["signature"]);
  repro.failure = failure_in(field["failure"]);
  repro.failing_line = context_in(field["failure"], "source");
  read_plan(field["plan"], repro);
  repro.conditions = conditions_in(field["conditions"]);
  if (field.has("order")) repro.order = order_in(field["order"]);
  if (field.has("factor")) repro.factor = field["factor"].text(longest_text);
  if (repro.is_plain()) repro.plan.agent = false;
  repro.timeout = field["timeout"].duration(1ms, longest_timeout);
  repro.passes_under_plan = field["passes_under_plan"].flag();
  read_measured(field["measured"], repro);
  read_found(field["found"], repro);
  return repro;
}

namespace {

struct TooDeep {};

// The library's own words begin with a number in brackets that nobody can look up.
std::string reason_of(const json::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return printable(shorten(end == std::string_view::npos ? text : text.substr(end + 2), 300));
}

Result<json> document(std::string_view text, const std::string& path, const FileKind& kind) {
  if (text.size() > largest_repro)
    return usage_error(fmt::format("a {} file has at most {} MiB", kind.name, largest_repro >> 20),
                       path, "is it the right file?");
  try {
    return json::parse(text, [](int depth, json::parse_event_t, json&) {
      if (depth > deepest) throw TooDeep();
      return true;
    });
  } catch (const json::exception& error) {
    return usage_error("this JSON file is not complete: " + reason_of(error), path,
                       make_again(kind));
  } catch (const TooDeep&) {
    return usage_error(fmt::format("this JSON is nested more than {} deep", deepest), path,
                       "is it the right file?");
  }
}

std::optional<Error> why_other_format(const json& root, const std::string& path,
                                      const FileKind& kind) {
  const auto format = root.is_object() ? root.find("format") : root.end();
  if (!root.is_object() || format == root.end() || !format->is_number_integer())
    return usage_error(fmt::format("this is not a {} file: it has no \"format\"", kind.name), path,
                       fmt::format("name a file that `{}` has written", kind.command));
  if (*format > kind.format)
    return usage_error(
        fmt::format("this {} file has format {}, and this unflake knows {}", kind.name,
                    format->dump(), kind.format),
        path + ": $.format",
        fmt::format("use a newer unflake, or write it again with `{}`", kind.command));
  if (*format < 1)
    return usage_error(fmt::format("there is no format {} of {} files", format->dump(), kind.name),
                       path + ": $.format", make_again(kind));
  return std::nullopt;
}

}  // namespace

Result<json> parse_document(std::string_view text, const std::string& path, const FileKind& kind) {
  auto root = document(text, path, kind);
  if (!root) return root.error();
  if (auto other = why_other_format(*root, path, kind)) return *other;
  return root;
}

Result<Repro> parse_repro(std::string_view text, const std::string& path_for_errors) {
  const FileKind kind{"repro", "unflake reproduce", repro_format};
  const auto root = parse_document(text, path_for_errors, kind);
  if (!root) return root.error();
  std::optional<JsonField::Wrong> wrong;
  Repro repro = repro_in(JsonField(*root, wrong));
  if (!wrong) return repro;
  return usage_error(std::move(wrong->what), path_for_errors + ": " + wrong->where,
                     wrong->next.empty() ? make_again(kind) : std::move(wrong->next));
}

}  // namespace unflake
