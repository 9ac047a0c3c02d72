#include "report/search_text.h"

#include <fmt/format.h>

#include "report/trace_text.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Answer = ExploreReport::Answer;
using Json = nlohmann::ordered_json;

std::string schedules(uint64_t count) {
  return counted(static_cast<long long>(count), "schedule");
}

std::string tried_in(const ExploreReport& report) {
  return fmt::format("{} in {}", schedules(report.schedules), format_duration(report.elapsed));
}

bool is_only_under_control(const ExploreReport::Found& found) {
  return found.free_runs > 0 && found.free_failures == 0;
}

std::string answer_line(const ExploreReport& report, const Style& style) {
  const std::string test = one_line(to_string(report.test));
  switch (report.answer) {
    case Answer::fails:
      if (is_only_under_control(*report.found))
        return status_line(style, Tone::doubtful, "FAILED", std::nullopt,
                           test + ", but only under control");
      if (report.found->came_back > 0)
        return status_line(style, Tone::bad, "FAILS", std::nullopt,
                           test + ", and it is known when");
      return status_line(style, Tone::doubtful, "FAILED", std::nullopt,
                         test + ", but not again under the same schedule");
    case Answer::passes_in_all:
      // Whoever shares memory without a call can still fail.
      if (report.access_sites + report.guarded_accesses == 0 && report.threads > 1)
        return status_line(style, Tone::good, "NO FAILURE", std::nullopt,
                           test + " passes in all orders of its calls");
      return status_line(style, Tone::good, "SOUND", std::nullopt,
                         test + " passes in all schedules");
    case Answer::nothing_new:
      return status_line(style, Tone::good, "NO FAILURE", std::nullopt,
                         test + ", and hardly anything new is left to see");
    case Answer::budget_over:
      return status_line(style, Tone::plain, "NO FAILURE", std::nullopt,
                         test + ", until the budget was over");
    case Answer::not_controlled:
      return status_line(style, Tone::doubtful, "NOT TRIED", std::nullopt,
                         test + " cannot be controlled: " + one_line(report.why));
    case Answer::stopped:
      break;
  }
  return status_line(style, Tone::doubtful, "STOPPED", std::nullopt, test);
}

std::string found_lines(const ExploreReport::Found& found) {
  std::string text;
  if (!found.signature.empty())
    text += detail_line(fmt::format("{} [{}]", one_line(headline(found.failure)), found.signature));
  for (const std::string& sentence : found.sentences)
    text += detail_line("when " + one_line(sentence));
  if (!found.deadlock.empty()) text += detail_line("then nobody can go on:");
  for (const std::string& sentence : found.deadlock) text += detail_line("  " + one_line(sentence));
  if (found.stall > Duration{})
    text += detail_line(
        fmt::format("and a thread that could go on is {} late", format_duration(found.stall)));
  return text;
}

std::string how_found(const ExploreReport::Found& found) {
  std::string text = detail_line(fmt::format(
      "found by {} after {}; came back {} of {} times under the same schedule",
      to_string(found.sampler), schedules(found.after_schedules), found.came_back, found.repeats));
  if (found.free_runs > 0)
    text += detail_line(
        fmt::format("{} of {} on free cores failed: {}", found.free_failures,
                    counted(static_cast<long long>(found.free_runs), "run"),
                    is_only_under_control(found)
                        ? "the test does something that control gets wrong, and may well be sound"
                        : "it fails by itself, no order of its threads is needed"));
  if (found.came_back > 0 && found.switches_at_first > 0)
    text += detail_line(
        fmt::format("{} of the {} of threads are left that it needs{}", found.switches,
                    counted(static_cast<long long>(found.switches_at_first), "exchange"),
                    found.needs_accesses ? ", some at memory accesses" : ""));
  return text;
}

std::string what_was_seen(const ExploreReport& report) {
  if (report.sampled == 0 && report.switch_points == 0) return "";
  std::string text = detail_line(
      fmt::format("{}, {}, {}", counted(static_cast<long long>(report.threads), "thread"),
                  counted(static_cast<long long>(report.switch_points), "switch point"),
                  counted(static_cast<long long>(report.shared_objects), "shared object")));
  text += detail_line(fmt::format(
      "{}; {} of {} of places that can come in either order were seen in both",
      counted(static_cast<long long>(report.orders), "different order"),
      report.pairs_in_both_orders, counted(static_cast<long long>(report.pairs), "pair")));
  if (report.guarded_accesses > 0)
    text += detail_line(
        fmt::format("{} always under one lock what several threads use: no switch points",
                    report.guarded_accesses == 1
                        ? "1 instruction touches"
                        : fmt::format("{} instructions touch", report.guarded_accesses)));
  if (report.looked_for_accesses && report.access_sites + report.guarded_accesses == 0)
    text += detail_line("no instruction was seen to touch memory that several threads use");
  for (const std::string& access : report.hot_accesses)
    text += detail_line(fmt::format(
        "{} comes more than {} times: threads were exchanged at its first {} visits only",
        one_line(access), visits_of_hot_access, exchanges_at_hot_access));
  if (!report.looked_for_accesses)
    text += detail_line("threads were exchanged at calls only, not at memory accesses");
  return text;
}

// Good and Turing: how much was seen only once tells how much was not seen at all.
std::string what_is_left(const ExploreReport& report) {
  if (report.sampled == 0 || report.found || report.answer == Answer::passes_in_all) return "";
  std::string text = detail_line(fmt::format(
      "the next schedule would show a new order in about {} of cases",
      percent(static_cast<double>(report.orders_seen_once) / static_cast<double>(report.sampled))));
  if (report.longest_stall > Duration{})
    text += detail_line(fmt::format("threads were up to {} late; --stall tries more",
                                    format_duration(report.longest_stall)));
  return text;
}

std::string bounded_lines(const ExploreReport& report) {
  std::string text;
  for (const ExploreReport::Bounded& bounded : report.bounded) {
    const std::string which =
        bounded.preemptions
            ? fmt::format("schedules with at most {}", counted(*bounded.preemptions, "preemption"))
            : std::string("schedules");
    if (bounded.is_complete)
      text += detail_line(fmt::format("all {} pass: {} run, the others are equal to one of them",
                                      which, bounded.schedules));
    else if (!report.found)
      text += detail_line(fmt::format("not all {} were run, only {}: {}", which, bounded.schedules,
                                      one_line(bounded.why_incomplete)));
  }
  return text;
}

std::string tally_table(const std::vector<ExploreReport::Tally>& tallies) {
  Table table({"sampler", "schedules", "fail", "rate", "95 % interval"});
  for (const ExploreReport::Tally& tally : tallies) {
    const auto failures = static_cast<int64_t>(tally.failures);
    const auto runs = static_cast<int64_t>(tally.schedules);
    table.add({std::string(to_string(tally.sampler)), std::to_string(runs),
               std::to_string(failures),
               percent(static_cast<double>(failures) / static_cast<double>(runs)),
               interval_text(exact_interval(failures, runs))});
  }
  return "\n" + table.text();
}

const char* name_of(Answer answer) {
  switch (answer) {
    case Answer::fails:
      return "fails";
    case Answer::passes_in_all:
      return "passes_in_all";
    case Answer::nothing_new:
      return "nothing_new";
    case Answer::budget_over:
      return "budget_over";
    case Answer::not_controlled:
      return "not_controlled";
    case Answer::stopped:
      break;
  }
  return "stopped";
}

double ms(Duration duration) {
  return static_cast<double>(duration.count()) / 1000;
}

Json texts(const std::vector<std::string>& all) {
  Json list = Json::array();
  for (const std::string& text : all) list.push_back(one_line(text));
  return list;
}

Json json_of(const std::vector<ExploreReport::Tally>& tallies) {
  Json list = Json::array();
  for (const ExploreReport::Tally& tally : tallies) {
    const Interval interval =
        exact_interval(static_cast<int64_t>(tally.failures), static_cast<int64_t>(tally.schedules));
    list.push_back({{"sampler", to_string(tally.sampler)},
                    {"schedules", tally.schedules},
                    {"failures", tally.failures},
                    {"low", interval.low},
                    {"high", interval.high}});
  }
  return list;
}

Json json_of(const std::vector<ExploreReport::Bounded>& all) {
  Json list = Json::array();
  for (const ExploreReport::Bounded& bounded : all) {
    Json one{{"preemptions", nullptr},
             {"schedules", bounded.schedules},
             {"complete", bounded.is_complete}};
    if (bounded.preemptions) one["preemptions"] = *bounded.preemptions;
    if (!bounded.is_complete) one["why"] = one_line(bounded.why_incomplete);
    list.push_back(std::move(one));
  }
  return list;
}

Json json_of(const std::vector<OrderConstraint>& orders) {
  Json list = Json::array();
  for (const OrderConstraint& order : orders)
    list.push_back({{"thread", order.thread},
                    {"site", one_line(to_string(order.site))},
                    {"visit", order.visit},
                    {"after_thread", order.other},
                    {"after_site", one_line(to_string(order.other_site))},
                    {"after_visit", order.other_visit}});
  return list;
}

Json json_of(const ExploreReport::Found& found) {
  Json decisions = Json::array();
  for (const Decision& decision : found.schedule.decisions)
    decisions.push_back({decision.point, decision.thread});
  return {{"outcome", to_string(found.outcome)},
          {"signature", found.signature},
          {"headline", one_line(headline(found.failure))},
          {"sampler", to_string(found.sampler)},
          {"after_schedules", found.after_schedules},
          {"came_back", found.came_back},
          {"repeats", found.repeats},
          {"switches", found.switches},
          {"switches_at_first", found.switches_at_first},
          {"stall_ms", ms(found.stall)},
          {"needs_accesses", found.needs_accesses},
          {"free_runs", found.free_runs},
          {"free_failures", found.free_failures},
          {"digest", fmt::format("{:016x}", found.digest)},
          {"decisions", std::move(decisions)},
          {"orders", json_of(found.orders)},
          {"sentences", texts(found.sentences)},
          {"deadlock", texts(found.deadlock)}};
}

}  // namespace

std::string explore_text(const ExploreReport& report, const Style& style) {
  std::string text = "\n" + answer_line(report, style);
  if (report.found) text += found_lines(*report.found) + how_found(*report.found);
  if (report.answer == Answer::not_controlled) return text;
  text += detail_line(tried_in(report));
  text += what_was_seen(report) + bounded_lines(report) + what_is_left(report);
  if (!report.not_repeatable.empty())
    text += detail_line("equal schedules may give different runs, because of " +
                        one_line(report.not_repeatable));
  const auto& tallies = report.rates.empty() ? report.tries : report.rates;
  if (!tallies.empty()) text += tally_table(tallies);
  return text;
}

std::string explore_json(const ExploreReport& report) {
  Json json{{"format", "unflake-explore"},
            {"version", 1},
            {"test", printable(to_string(report.test))},
            {"answer", name_of(report.answer)},
            {"seed", report.seed},
            {"budget_ms", ms(report.budget)},
            {"elapsed_ms", ms(report.elapsed)},
            {"schedules", report.schedules},
            {"threads", report.threads},
            {"switch_points", report.switch_points},
            {"shared_objects", report.shared_objects},
            {"looked_for_accesses", report.looked_for_accesses},
            {"access_sites", report.access_sites},
            {"guarded_accesses", report.guarded_accesses},
            {"hot_accesses", texts(report.hot_accesses)},
            {"longest_stall_ms", ms(report.longest_stall)},
            {"pairs", report.pairs},
            {"pairs_in_both_orders", report.pairs_in_both_orders},
            {"orders", report.orders},
            {"orders_seen_once", report.orders_seen_once},
            {"sampled", report.sampled},
            {"since_new_order", report.since_new_order},
            {"bounded", json_of(report.bounded)},
            {"tries", json_of(report.tries)},
            {"rates", json_of(report.rates)}};
  if (!report.why.empty()) json["why"] = one_line(report.why);
  if (!report.not_repeatable.empty()) json["not_repeatable"] = one_line(report.not_repeatable);
  if (report.found) json["failure"] = json_of(*report.found);
  return json.dump(2) + "\n";
}

namespace {

using RaceAnswer = RaceReport::Answer;
using Json = nlohmann::ordered_json;

std::string runs_of(const RaceReport& report) {
  return fmt::format("{} under {}", counted(static_cast<long long>(report.runs), "run"),
                     counted(static_cast<long long>(report.orders), "different order"));
}

std::string answer_line(const RaceReport& report, const Style& style) {
  const std::string test = one_line(to_string(report.test));
  const auto line = [&](Tone tone, std::string_view word, const std::string& text) {
    return status_line(style, tone, word, std::nullopt, test + text);
  };
  switch (report.answer) {
    case RaceAnswer::found:
      return line(Tone::bad, "RACES",
                  fmt::format(": {} in {}",
                              counted(static_cast<long long>(report.races.size()), "data race"),
                              runs_of(report)));
    case RaceAnswer::none:
      if (report.access_sites == 0)
        return line(Tone::good, "NO RACES",
                    ": no memory was seen that several threads use without a common lock");
      return line(Tone::good, "NO RACES", " in " + runs_of(report));
    case RaceAnswer::not_controlled:
      return line(Tone::doubtful, "NOT TRIED", " cannot be controlled: " + one_line(report.why));
    case RaceAnswer::budget_over:
      return line(Tone::doubtful, "NOT TRIED", ": the budget was over before the first run");
    case RaceAnswer::stopped:
      break;
  }
  return line(Tone::doubtful, "STOPPED", "");
}

std::string words_of(const Race::Access& access) {
  const std::string what =
      fmt::format("{} of {}", access.writes ? "write" : "read", counted(access.size, "byte"));
  switch (access.manner) {
    case Race::Manner::plain:
      return what;
    case Race::Manner::not_told:
      return what + " (plain, or an atomic " + (access.writes ? "store" : "load") +
             ": the instruction does not tell)";
    case Race::Manner::atomic:
      break;
  }
  return "atomic " + what;
}

std::string access_lines(const Race::Access& access, const Race& race) {
  std::string text = detail_line(
      fmt::format("{} by {} at {}", words_of(access), one_line(access.thread),
                  one_line(access.location.empty() ? to_string(access.site) : access.location)));
  for (const std::string& line :
       split(stack_text(access.stack, race.images, StackDetail::project), '\n'))
    if (!trim(line).empty()) text += detail_line(fmt::format("    {}", one_line(trim(line))));
  return text;
}

std::string race_lines(const Race& race, uint64_t runs) {
  std::string what = race.variable.empty() ? "memory " + race.region : race.variable;
  if (!race.type.empty()) what += fmt::format(" ({})", race.type);
  std::string text = "\n" + detail_line(fmt::format("{}, in {} of {}", one_line(what), race.runs,
                                                    counted(static_cast<long long>(runs), "run")));
  return text + access_lines(race.first, race) + access_lines(race.second, race);
}

std::string what_was_watched(const RaceReport& report) {
  std::string text = detail_line(fmt::format(
      "{}; {} of project code watched{}", counted(static_cast<long long>(report.threads), "thread"),
      counted(static_cast<long long>(report.access_sites), "instruction"),
      report.guarded_accesses == 0
          ? ""
          : fmt::format(", {} left out that always hold a common lock", report.guarded_accesses)));
  for (const std::string& access : report.hot_accesses)
    text +=
        detail_line(fmt::format("{} comes more than {} times: its first {} visits were watched",
                                one_line(access), visits_of_hot_access, exchanges_at_hot_access));
  if (report.cut_runs > 0)
    text += detail_line(fmt::format(
        "{} very long: only the first part was looked at",
        report.cut_runs == 1 ? "1 run was" : fmt::format("{} runs were", report.cut_runs)));
  text += detail_line(
      "not seen: accesses by system libraries (memcpy, too), and what no run has reached");
  return text;
}

const char* name_of_answer(RaceAnswer answer) {
  switch (answer) {
    case RaceAnswer::found:
      return "found";
    case RaceAnswer::none:
      return "none";
    case RaceAnswer::not_controlled:
      return "not_controlled";
    case RaceAnswer::budget_over:
      return "budget_over";
    case RaceAnswer::stopped:
      break;
  }
  return "stopped";
}

const char* name_of_manner(Race::Manner manner) {
  switch (manner) {
    case Race::Manner::plain:
      return "plain";
    case Race::Manner::not_told:
      return "not_told";
    case Race::Manner::atomic:
      break;
  }
  return "atomic";
}

Json json_of(const TracedStack& stack) {
  Json frames = Json::array();
  for (const TracedFrame& frame : stack.frames)
    for (size_t i = 0; i < frame.source.size(); ++i)
      frames.push_back({{"function", one_line(frame.source[i].function)},
                        {"file", one_line(frame.source[i].file)},
                        {"line", frame.source[i].line},
                        {"project", i >= frame.first_project}});
  return frames;
}

Json json_of(const Race::Access& access) {
  return {{"kind", access.writes ? "write" : "read"},
          {"bytes", access.size},
          {"manner", name_of_manner(access.manner)},
          {"thread", one_line(access.thread)},
          {"location", one_line(access.location)},
          {"site", one_line(to_string(access.site))},
          {"stack", json_of(access.stack)}};
}

Json json_of(const Race& race) {
  Json json{{"variable", nullptr}, {"type", nullptr}, {"region", nullptr}, {"runs", race.runs}};
  if (!race.variable.empty()) json["variable"] = one_line(race.variable);
  if (!race.type.empty()) json["type"] = one_line(race.type);
  if (!race.region.empty()) json["region"] = race.region;
  json["accesses"] = Json::array({json_of(race.first), json_of(race.second)});
  return json;
}

}  // namespace

std::string races_text(const RaceReport& report, const Style& style) {
  std::string text = "\n" + answer_line(report, style);
  if (report.answer == RaceAnswer::not_controlled) return text;
  for (const Race& race : report.races) text += race_lines(race, report.runs);
  if (!report.races.empty()) text += "\n";
  text += what_was_watched(report);
  if (!report.not_repeatable.empty())
    text += detail_line("another time it may be different, because of " +
                        one_line(report.not_repeatable));
  return text;
}

std::string races_json(const RaceReport& report) {
  const auto ms = [](Duration time) { return static_cast<double>(time.count()) / 1000; };
  Json races = Json::array(), hot = Json::array();
  for (const Race& race : report.races) races.push_back(json_of(race));
  for (const std::string& access : report.hot_accesses) hot.push_back(one_line(access));
  Json json{{"format", "unflake-races"},
            {"version", 1},
            {"test", printable(to_string(report.test))},
            {"answer", name_of_answer(report.answer)},
            {"seed", report.seed},
            {"budget_ms", ms(report.budget)},
            {"elapsed_ms", ms(report.elapsed)},
            {"runs", report.runs},
            {"orders", report.orders},
            {"cut_runs", report.cut_runs},
            {"threads", report.threads},
            {"access_sites", report.access_sites},
            {"guarded_accesses", report.guarded_accesses},
            {"hot_accesses", std::move(hot)},
            {"races", std::move(races)}};
  if (!report.why.empty()) json["why"] = one_line(report.why);
  if (!report.not_repeatable.empty()) json["not_repeatable"] = one_line(report.not_repeatable);
  return json.dump(2) + "\n";
}

}  // namespace unflake
