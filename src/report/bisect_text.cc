#include "report/bisect_text.h"

#include <fmt/format.h>

#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using BisectJson = nlohmann::ordered_json;
using BisectAnswer = CommitBisection::Answer;

std::string_view word_of(BisectAnswer answer) {
  switch (answer) {
    case BisectAnswer::found:
      return "found";
    case BisectAnswer::several:
      return "several";
    case BisectAnswer::fails_before:
      return "fails_before";
    case BisectAnswer::never_fails:
      return "never_fails";
    case BisectAnswer::unfinished:
      return "unfinished";
  }
  return "?";
}

std::string name_of(const BisectReport::Commit& commit) {
  return short_id(commit) + (commit.subject.empty() ? "" : " " + one_line(commit.subject));
}

// The last look at a commit that says what its state rests on.
const CommitLook* look_at(const BisectReport& report, size_t commit) {
  const CommitLook* last = nullptr;
  for (const auto& step : report.bisection.steps)
    if (step.commit == commit) last = &step.look;
  return last;
}

std::string evidence(const BisectReport& report, size_t commit) {
  const CommitLook* look = look_at(report, commit);
  return detail_line(fmt::format("{} {}: {}", short_id(report.commits[commit]),
                                 look ? to_string(look->answer) : "was not looked at",
                                 look ? printable(look->how) : "taken for granted"));
}

std::string candidates(const BisectReport& report) {
  std::string text;
  for (size_t i = report.bisection.last_holding + 1; i <= report.bisection.first_failing; ++i)
    text += detail_line(name_of(report.commits[i]));
  return text;
}

std::string answer_lines(const BisectReport& report, const Style& style) {
  const CommitBisection& found = report.bisection;
  const std::string test = printable(to_string(report.test));
  const auto line = [&](Tone tone, const char* word, const std::string& text) {
    return style.paint(tone, word) + " " + text + "\n";
  };
  switch (found.answer) {
    case BisectAnswer::found:
      return line(Tone::bad, "INTRODUCED by", name_of(report.commits[found.first_failing])) +
             evidence(report, found.first_failing) + evidence(report, found.last_holding);
    case BisectAnswer::several:
      return line(Tone::doubtful, "INTRODUCED by one of these",
                  "of which all but the last cannot be told:") +
             candidates(report) + evidence(report, found.first_failing) +
             evidence(report, found.last_holding);
    case BisectAnswer::fails_before:
      return line(
                 Tone::doubtful, "OLDER",
                 fmt::format("it fails at {}, too: name an older commit", printable(report.from))) +
             evidence(report, 0);
    case BisectAnswer::never_fails:
      return line(Tone::good, "NO SIGN",
                  fmt::format("of flakiness at {}, so that there is nothing to look for",
                              printable(report.to))) +
             evidence(report, report.commits.size() - 1);
    case BisectAnswer::unfinished:
      return line(
          Tone::doubtful, "NOT FINISHED",
          fmt::format("{} commits are left, up to {}", found.first_failing - found.last_holding,
                      name_of(report.commits[found.first_failing])));
  }
  return "";
}

}  // namespace

std::string bisect_text(const BisectReport& report, const Style& style) {
  std::string text = printable(to_string(report.test)) + "\n";
  if (!report.headline.empty())
    text += detail_line(fmt::format("{} [{}]", one_line(report.headline), report.signature));
  if (!report.how.empty()) text += detail_line(one_line(report.how));
  text += answer_lines(report, style);
  text += fmt::format("\n{} in {} of {} commits; {} in {}\n", counted(report.runs, "run"),
                      counted(report.builds, "build"), report.commits.size() - 1,
                      "builds took " + format_duration(report.in_builds),
                      format_duration(report.elapsed));
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  return text;
}

std::string bisect_json(const BisectReport& report) {
  BisectJson json = {{"format", "unflake-bisect"},
                     {"version", 1},
                     {"target", printable(report.test.target)},
                     {"name", printable(report.test.name)},
                     {"good", printable(report.from)},
                     {"bad", printable(report.to)},
                     {"answer", word_of(report.bisection.answer)}};
  if (const auto* first = report.first())
    json["commit"] = {{"id", printable(first->id)}, {"subject", printable(first->subject)}};
  json["candidates"] = BisectJson::array();
  if (report.bisection.answer == BisectAnswer::several ||
      report.bisection.answer == BisectAnswer::unfinished)
    for (size_t i = report.bisection.last_holding + 1; i <= report.bisection.first_failing; ++i)
      json["candidates"].push_back(printable(report.commits[i].id));
  json["failure"] = printable(report.headline);
  json["signature"] = report.signature;
  json["fails_when"] = printable(report.how);
  json["commits"] = report.commits.size() - 1;
  json["builds"] = report.builds;
  json["runs"] = report.runs;
  json["build_seconds"] = std::chrono::duration<double>(report.in_builds).count();
  json["elapsed_seconds"] = std::chrono::duration<double>(report.elapsed).count();
  json["steps"] = BisectJson::array();
  for (const auto& step : report.bisection.steps)
    json["steps"].push_back({{"commit", printable(report.commits[step.commit].id)},
                             {"answer", to_string(step.look.answer)},
                             {"thorough", step.is_thorough},
                             {"failures", step.look.failures.hits},
                             {"of_runs", step.look.failures.runs},
                             {"runs", step.look.runs},
                             {"how", printable(step.look.how)}});
  json["notes"] = BisectJson::array();
  for (const std::string& note : report.notes) json["notes"].push_back(printable(note));
  return json_text(json, 1) + "\n";
}

}  // namespace unflake
