#include <fmt/format.h>

#include <tuple>

#include "document.h"
#include "figures.h"
#include "markdown.h"
#include "measure.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake::eval {
namespace {

constexpr const char* head = R"(# Evaluation

`make eval` writes this file. It runs `unflake reproduce`, `replay` and `explain` on every program of [zoo/](../zoo) and compares
what they say with the truth that stands beside each program.

How to read it:
- *Reproduced* means: exit status 0, and a repro whose failure is the one that the truth names. The search was given that failure, as a
  CI log would give it; programs that must not be reported were searched without.
- *Runs* are experiments of the search until the plan that was confirmed. Profiling (5 runs), confirmation and the measurement of the
  slack come on top; *time* is all of it, of the process from start to end.
- *Slack* is how late the thread may be: under the first delay the test still passes, under the second it fails.
- *Inverted*: a test that fails by itself in most runs is not made to fail but to pass; that plan names the same two events.

Its limits: the programs are small, most of them sleep more than they compute, and the people who wrote unflake wrote them. The
order in which `guided` tries delays was written before all of these programs but one. What it puts in order, delays for classes of threads, pairs, first
delays, forked children and time limits were changed when the programs were there, so that some of this may be fitted to them. These figures
say what to expect of failures like these, and not of all.
)";

std::string seconds(int64_t microseconds) {
  return fmt::format("{:.1f}", static_cast<double>(microseconds) / 1e6);
}

bool has_defaults(const EvalSettings& how) {
  const EvalSettings usual;
  return std::tie(how.replays, how.jobs, how.reruns, how.busy, how.budget_us,
                  how.strategy_budget_us) == std::tie(usual.replays, usual.jobs, usual.reruns,
                                                      usual.busy, usual.budget_us,
                                                      usual.strategy_budget_us);
}

std::string surroundings(const Results& results) {
  const EvalSettings& how = results.settings;
  return "\n" + to_string(results.where) + "\n" +
         fmt::format(
             "Searches that are timed ran one at a time, {} programs side by side otherwise, "
             "replays of "
             "{}; budget of a search {}, of a strategy alone {}.\n",
             how.jobs, 2 * how.jobs, format_duration(Duration(how.budget_us)),
             format_duration(Duration(how.strategy_budget_us))) +
         (has_defaults(how) ? "" : "These are not the settings of a plain `make eval`.\n");
}

struct Tally {
  size_t programs = 0, found = 0, inverted = 0;
  std::vector<double> runs, seconds, all_seconds;
  std::vector<std::string> missed;
};

void count(Tally& tally, const std::string& program, const Search& search) {
  ++tally.programs;
  tally.all_seconds.push_back(static_cast<double>(search.elapsed_us) / 1e6);
  if (!search.is_truth) return tally.missed.push_back(program);
  ++tally.found;
  tally.inverted += search.is_inverted;
  tally.runs.push_back(search.runs);
  tally.seconds.push_back(static_cast<double>(search.elapsed_us) / 1e6);
}

std::vector<std::string> cells_of(const std::string& name, const Tally& tally, bool inverted) {
  std::vector<std::string> cells{name, fmt::format("{} of {}", tally.found, tally.programs)};
  if (inverted) cells.push_back(fmt::format("{}", tally.inverted));
  const std::vector<std::string> figures{
      fmt::format("{:.1f}", median(tally.runs)), fmt::format("{:.1f}", mean(tally.runs)),
      fmt::format("{:.1f}", median(tally.seconds)), fmt::format("{:.1f}", mean(tally.all_seconds))};
  for (const std::string& figure : figures) cells.push_back(tally.found == 0 ? "" : figure);
  if (tally.found == 0) cells.back() = figures.back();
  cells.push_back(tally.missed.size() <= 8 ? join(tally.missed, ", ")
                                           : fmt::format("{} programs", tally.missed.size()));
  return cells;
}

std::string rerun_row(const std::vector<Measured>& some, bool inverted) {
  size_t found = 0;
  int64_t runs = 0, hits = 0, elapsed = 0;
  for (const Measured& one : some) {
    const Reruns& reruns = one.result->reruns;
    found += reruns.hits > 0;
    runs += reruns.runs;
    hits += reruns.hits;
    elapsed += reruns.elapsed_us;
  }
  std::vector<std::string> cells{"plain reruns",
                                 fmt::format("{} of {} saw it", found, some.size())};
  if (inverted) cells.push_back("");
  const auto programs = static_cast<double>(std::max<size_t>(some.size(), 1));
  cells.insert(cells.end(),
               {"", fmt::format("{:.0f} made", static_cast<double>(runs) / programs), "",
                fmt::format("{:.1f}", static_cast<double>(elapsed) / 1e6 / programs),
                fmt::format("{} of {} runs failed like that", hits, runs)});
  return row(cells);
}

std::string strategy_table(const std::vector<Measured>& some, bool inverted) {
  if (some.empty()) return "None.\n";
  std::vector<std::string> columns{"strategy", "found"};
  if (inverted) columns.push_back("of these inverted");
  columns.insert(columns.end(),
                 {"runs, median", "runs, mean", "s, median", "s, mean of all", "not found"});
  std::string text = table_head(columns);
  for (const std::string& strategy : compared_strategies()) {
    Tally tally;
    for (const Measured& one : some)
      if (const Search* search = one.alone(strategy)) count(tally, one.truth->program, *search);
    text += row(cells_of(strategy, tally, inverted));
  }
  return text + rerun_row(some, inverted);
}

std::string comparison(const Results& results, const std::vector<Measured>& late) {
  const EvalSettings& how = results.settings;
  if (!how.with_strategies) return "";
  std::vector<Measured> rare, often;
  for (const Measured& one : late) (one.truth->fails_often() ? often : rare).push_back(one);
  return fmt::format(
             "\n## Strategies compared\n\nEach alone on the same programs, with a budget of {}. "
             "Runs and the "
             "median time are over what was found, the mean time over\nall programs. Plain reruns: "
             "`unflake run "
             "-n {} -j {}`, for at most a minute; seeing a failure is no\nreproduction, but it is "
             "what reruns can do.\n",
             format_duration(Duration(how.strategy_budget_us)), how.reruns, how.rerun_jobs) +
         "\nPrograms that rarely fail by themselves:\n\n" + strategy_table(rare, false) +
         "\nPrograms that fail by themselves in 20 % of all runs or more:\n\n" +
         strategy_table(often, true);
}

std::string slack_text(const Search& search) {
  if (search.slack_fails_us < 0) return "";
  return fmt::format("{} .. {}", format_duration(Duration(search.slack_passes_us)),
                     format_duration(Duration(search.slack_fails_us)));
}

std::string mark(const Agreement& agreement) {
  if (!agreement.asked) return "";
  return agreement.place ? "yes" : agreement.caller ? "caller" : "no";
}

std::string replay_text(const Replays& replays) {
  if (replays.runs == 0) return replays.otherwise;
  return fmt::format("{}/{}", replays.as_recorded, replays.runs);
}

std::string found_by(const Measured& one) {
  const Search& search = one.result->search;
  if (!search.found) return "**not found**";
  if (!search.is_truth) return "**another failure**: " + search.failure;
  return search.found_by + (search.is_inverted ? " (inverted)" : "");
}

std::string family_table(const std::string& title, const std::vector<Measured>& late) {
  if (late.empty()) return "";
  std::string text =
      "\n## " + title + "\n\n" +
      table_head({"program", "category", "found by", "runs", "s", "replays", "beside others"});
  for (const Measured& one : late)
    text += row(
        {one.truth->program, one.truth->category, found_by(one),
         std::to_string(one.reproduced() ? one.result->search.runs : one.result->search.all_runs),
         seconds(one.result->search.elapsed_us), replay_text(one.result->replays),
         replay_text(one.result->busy_replays)});
  return text;
}

std::string explained_table(const std::string& title, const std::vector<Measured>& late) {
  if (late.empty()) return "";
  std::string text = "\n## " + title +
                     "\n\nThe last three columns compare the explanation with the truth; `caller`: "
                     "the line "
                     "that called the place is the truth's.\n\n" +
                     table_head({"program", "category", "found by", "runs", "s", "slack", "replays",
                                 "beside others", "category right", "critical", "barrier"});
  for (const Measured& one : late) {
    const Search& search = one.result->search;
    const ExplanationCheck explained = check(*one.truth, one.result->explained);
    const bool is_explained = one.reproduced();
    text += row({one.truth->program, one.truth->category, found_by(one),
                 std::to_string(one.reproduced() ? search.runs : search.all_runs),
                 seconds(search.elapsed_us), slack_text(search), replay_text(one.result->replays),
                 replay_text(one.result->busy_replays),
                 !is_explained        ? ""
                 : explained.category ? "yes"
                                      : "no: " + one.result->explained.cause,
                 is_explained ? mark(explained.critical) : "",
                 is_explained ? mark(explained.barrier) : ""});
  }
  return text;
}

// What the tables have no room for: why nothing was found, and how replays ended that did not fail
// as recorded.
std::string details(const std::vector<Measured>& late) {
  std::string text;
  for (const Measured& one : late) {
    const Replays& replays = one.result->replays;
    if (!one.reproduced())
      text += fmt::format("- {}: not reproduced. unflake said: {}\n", one.truth->program,
                          cell(join(one.result->search.notes, "; ")));
    if (one.reproduced() && replays.as_recorded < replays.runs)
      text += fmt::format("- {}: {} replays ended otherwise: {}\n", one.truth->program,
                          replays.runs - replays.as_recorded,
                          replays.otherwise.empty() ? "they passed" : cell(replays.otherwise));
  }
  return text.empty() ? "" : "\n## What went wrong\n\n" + text;
}

std::string must_not_be_reported(const std::vector<Measured>& rest) {
  std::string text = "\n## Programs that must not be reported\n\n" +
                     table_head({"program", "expected", "reported", "experiments", "s"});
  for (const Measured& one : rest) {
    const Search& search = one.result->search;
    text += row({one.truth->program, one.truth->expect,
                 search.found         ? "**reproduced**: " + search.failure
                 : search.says_broken ? "broken"
                                      : "nothing",
                 std::to_string(search.all_runs), seconds(search.elapsed_us)});
  }
  return text;
}

}  // namespace

std::string document(const Results& results, const std::vector<Measured>& all,
                     const std::string& appended) {
  const auto late = late_ones(all);
  std::string text = head;
  text += surroundings(results);
  text += "\n## Targets\n\n" + targets_text(scores_of(all, results.settings));
  const auto usual = of_family(late, "");
  text += comparison(results, usual);
  text += explained_table("Programs", usual);
  text += explained_table("Programs with layers of their own", of_family(late, "layers"));
  text += family_table("Interleavings", of_family(late, "interleavings"));
  text += family_table("Tests that fail by themselves now and then", of_family(late, "unsteady"));
  text += details(late);
  text += must_not_be_reported(others(all));
  if (!appended.empty()) text += "\n" + appended;
  return text;
}

}  // namespace unflake::eval
