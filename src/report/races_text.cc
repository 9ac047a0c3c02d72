#include "report/races_text.h"

#include <fmt/format.h>

#include "report/trace_text.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Answer = RaceReport::Answer;
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
    case Answer::found:
      return line(Tone::bad, "RACES",
                  fmt::format(": {} in {}",
                              counted(static_cast<long long>(report.races.size()), "data race"),
                              runs_of(report)));
    case Answer::none:
      if (report.access_sites == 0)
        return line(Tone::good, "NO RACES",
                    ": no memory was seen that several threads use without a common lock");
      return line(Tone::good, "NO RACES", " in " + runs_of(report));
    case Answer::not_controlled:
      return line(Tone::doubtful, "NOT TRIED", " cannot be controlled: " + one_line(report.why));
    case Answer::budget_over:
      return line(Tone::doubtful, "NOT TRIED", ": the budget was over before the first run");
    case Answer::stopped:
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

const char* name_of_answer(Answer answer) {
  switch (answer) {
    case Answer::found:
      return "found";
    case Answer::none:
      return "none";
    case Answer::not_controlled:
      return "not_controlled";
    case Answer::budget_over:
      return "budget_over";
    case Answer::stopped:
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
  if (report.answer == Answer::not_controlled) return text;
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
