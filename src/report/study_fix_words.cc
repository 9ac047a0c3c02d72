#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/outcome.h"
#include "report/layout.h"
#include "report/study_pages.h"
#include "stats/rates.h"
#include "util/time.h"

namespace unflake {
namespace {

// Shares that studies of other people's flaky tests found: 134 tests of six projects (Lam and
// others 2020), and the two studies that it compares itself with (Luo and others 2014, Palomba and
// Zaidman 2017).
struct Published {
  std::string_view name, lam, luo, palomba;
};

constexpr Published nothing_published{"", "-", "-", "-"};
constexpr Published concurrency{"concurrency", "8 %", "20 %", "17 %"};

Published published_cause(std::string_view category) {
  if (category == "async wait") return {"async wait", "78 %", "45 %", "27 %"};
  if (category == "exact timing") return {"time", "4 %", "3 %", "3 %"};
  if (category == "resource") return {"resource leak", "5 %", "7 %", "3 %"};
  for (const char* name : {"ordering", "lost wake-up", "teardown race", "deadlock", "starvation"})
    if (category == name) return concurrency;
  return nothing_published;
}

constexpr std::array<Published, all_fix_places.size()> published_places{
    Published{"", "1 %", "12 %", "-"}, Published{"", "71 %", "73 %", ">= 61 %"},
    Published{"", "11 %", "11 %", "-"}, Published{"", "17 %", "4 %", "-"}};

constexpr std::array<std::string_view, all_fix_kinds.size()> published_kinds{
    "31 %", "28 %", "10 %", "25 %", "15 %", "23 %"};

std::vector<std::string> category_row(std::string what, int64_t part, int64_t whole,
                                      const Published& published) {
  return {std::move(what),
          share_text(part, whole),
          std::string(published.name),
          std::string(published.lam),
          std::string(published.luo),
          std::string(published.palomba)};
}

std::string fixes_text(int64_t number) {
  return fmt::format("{} {}", number, number == 1 ? "fix" : "fixes");
}

void remark_on_fixes(StudyTable& table, const FixCounts& fixes) {
  if (fixes.fixes == 0)
    table.remarks.push_back(
        "no fix is linked to a commit: name it when you close a report or lift a quarantine");
  else
    table.remarks.push_back(
        fmt::format("read: {} of {}. A fix is a test and the commit that is said to have fixed it",
                    fixes.fixes - fixes.unreadable, fixes_text(fixes.fixes)));
  if (fixes.unreadable > 0)
    table.remarks.push_back(fmt::format(
        "the commits of {} are not in this repository: fetch them, or run in the project's own",
        fixes_text(fixes.unreadable)));
}

std::string day_text(double days) {
  return fmt::format("{:.{}f}", days, days < 10 ? 1 : 0);
}

std::string median_text(const Survival& survival) {
  if (survival.ended + survival.open == 0) return "-";
  return fmt::format("{} ({}..{})", survival.median ? day_text(*survival.median) : "not reached",
                     survival.median_low ? day_text(*survival.median_low) : "0",
                     survival.median_high ? day_text(*survival.median_high) : "open");
}

std::string tries_text(const Tries& tries) {
  if (tries.runs == 0) return "no runs";
  return fmt::format("{} of {} ({})", tries.failures, tries.runs,
                     interval_text(exact_interval(tries.failures, tries.runs)));
}

std::string verdict_text(const ClaimedFix& fix) {
  switch (fix.verdict) {
    case ClaimedFix::Verdict::lower:
      return fix.after.failures == 0 ? "lower" : "lower, and not gone";
    case ClaimedFix::Verdict::not_lower:
      return fmt::format("not lower: {} of {} after, {} of {} before", fix.after.failures,
                         fix.after.runs, fix.before.failures, fix.before.runs);
    case ClaimedFix::Verdict::too_few_runs:
      if (fix.more_runs)
        return fmt::format("too few runs to tell: {} without this failure would",
                           *fix.more_runs == 1 ? "1 more" : fmt::format("{} more", *fix.more_runs));
      return "too few runs to tell";
    case ClaimedFix::Verdict::nothing_to_compare:
      break;
  }
  return "nothing to compare: before, at most the failure that led to the fix is recorded";
}

std::string commit_text(const std::string& commit) {
  return commit.empty() ? "-" : commit.substr(0, 10);
}

std::string failure_text(const TestId& test, const std::string& signature) {
  return signature.empty() ? to_string(test) : to_string(test) + " " + signature.substr(0, 8);
}

}  // namespace

StudyTable category_table(const Study& study) {
  const CategoryCounts& counts = study.categories;
  StudyTable table{"5",
                   "Root causes of flaky tests, and where they were fixed",
                   {"", "here (95 %)", "there called", "Lam 2020", "Luo 2014", "Palomba 2017"},
                   {},
                   {},
                   {}};
  for (const CategoryRow& row : counts.causes)
    table.rows.push_back(
        category_row("cause: " + row.name, row.tests, counts.tests, published_cause(row.name)));
  table.rows.push_back(category_row("cause: not explained", counts.tests - counts.explained,
                                    counts.tests, {"difficult", "26 %", "20 %", "-"}));
  const int64_t read = counts.fixes.fixes - counts.fixes.unreadable;
  for (const FixPlace place : all_fix_places) {
    const auto i = static_cast<size_t>(place);
    table.rows.push_back(category_row(fmt::format("fix: {}", to_string(place)),
                                      counts.fixes.places[i], read, published_places[i]));
  }
  table.remarks.push_back(
      fmt::format("causes are of {} of {}: `unflake reproduce` and `unflake explain` find them; a "
                  "test may have several",
                  counted(counts.explained, "flaky test"), counts.tests));
  remark_on_fixes(table, counts.fixes);
  table.remarks.push_back(
      "test code is code in a folder or file that is named so, or in which a flaky test's "
      "assertion "
      "failed; a fix that touches more than code, documents aside, is `other`");
  return table;
}

StudyTable repair_time_table(const Study& study) {
  StudyTable table{
      "6",
      "Days from the first flaky failure, or its report, until it was closed",
      {"project", "closed", "their median", "their mean", "still open", "median of all (95 %)"},
      {},
      {},
      {}};
  for (const RepairTimeRow& row : study.repair_times) {
    const bool none = row.closed.count == 0;
    table.rows.push_back({project_text(row.project), std::to_string(row.survival.ended),
                          none ? "-" : day_text(row.closed.median),
                          none ? "-" : day_text(row.closed.mean), std::to_string(row.survival.open),
                          median_text(row.survival)});
  }
  table.remarks = {
      "one is a failure (a test and a signature), and a new one when it comes back after a claimed "
      "fix",
      "the median of all counts the open ones for as long as they are open (Kaplan and Meier); "
      "that "
      "of the closed ones alone is too good",
      "Lam 2020: 861 reports of flaky tests, median 7 days, mean 18; of other reports 7 and 13"};
  return table;
}

StudyTable fix_kind_table(const Study& study) {
  const FixCounts& fixes = study.categories.fixes;
  StudyTable table{"7",
                   "What fixes did about a wait",
                   {"", "fixes of async waits (95 %)", "all fixes (95 %)", "Lam 2020"},
                   {},
                   {},
                   {}};
  for (const FixKind kind : all_fix_kinds) {
    const auto i = static_cast<size_t>(kind);
    table.rows.push_back({std::string(to_string(kind)),
                          share_text(fixes.async_kinds[i], fixes.async_fixes),
                          share_text(fixes.kinds[i], fixes.fixes - fixes.unreadable),
                          std::string(published_kinds[i])});
  }
  remark_on_fixes(table, fixes);
  table.remarks.push_back(
      "told by the words of the diff; a fix may be of several kinds, and one that touches more "
      "than "
      "50 files is hard to say");
  return table;
}

StudyTable reoccurrence_table(const Study& study) {
  const ReoccurrenceCounts& counts = study.reoccurrences;
  StudyTable table{"reoccurrence",
                   "Flaky again after a claimed fix",
                   {"test", "closed", "commit", "again (UTC)", "days after"},
                   {},
                   {},
                   {}};
  for (const Reoccurrence& one : counts.all) {
    const double days =
        std::chrono::duration<double, std::ratio<86400>>(one.again - one.closed).count();
    table.rows.push_back({failure_text(one.test, one.signature), timestamp_in_minutes(one.closed),
                          commit_text(one.commit), timestamp_in_minutes(one.again),
                          day_text(days)});
  }
  if (counts.tests == 0)
    table.remarks.push_back("no fix was claimed yet");
  else
    table.remarks.push_back(fmt::format("{} of {} with a claimed fix",
                                        share_text(counts.tests_again, counts.tests),
                                        counted(counts.tests, "test")));
  if (counts.tests_only_failing > 0)
    table.remarks.push_back(fmt::format(
        "{} failed so since, but never where it passed on the same code: broken rather than "
        "flaky, or not run often enough. The table of claimed fixes counts these runs, too",
        counted(counts.tests_only_failing, "test")));
  if (!counts.all.empty())
    table.remarks.push_back(
        fmt::format("median {} days after the claim", day_text(counts.days.median)));
  table.remarks.push_back("Lam 2020: 4 of 1,040 tests were fixed more than once");
  return table;
}

std::string proof_command(const ClaimedFix& fix) {
  const auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  const bool is_commit = fix.commit.size() >= 7 && std::ranges::all_of(fix.commit, is_hex);
  if (!is_commit || !is_signature(fix.signature)) return "";
  return fmt::format("unflake prove {0} --rev {1}~..{1}", fix.signature.substr(0, 8),
                     commit_text(fix.commit));
}

StudyTable claimed_fix_table(const Study& study) {
  StudyTable table{
      "fixes",
      "Claimed fixes: failure rate before and after",
      {"test", "closed", "commit", "before (95 %)", "after (95 %)", "p", "corrected", "rate after"},
      {},
      {},
      {}};
  for (const ClaimedFix& fix : study.claimed_fixes) {
    const bool compared = fix.verdict != ClaimedFix::Verdict::nothing_to_compare;
    table.rows.push_back({failure_text(fix.test, fix.signature), timestamp_in_minutes(fix.at),
                          commit_text(fix.commit), tries_text(fix.before), tries_text(fix.after),
                          compared ? p_text(fix.p) : "-", compared ? p_text(fix.p_corrected) : "-",
                          verdict_text(fix)});
  }
  if (study.claimed_fixes.empty()) {
    table.remarks.push_back("no fix was claimed yet: close a report or lift a quarantine");
    return table;
  }
  table.remarks = {
      "runs with this failure of all runs; as long before as after, and 30 days at least, without "
      "the failure that led to the fix",
      "p: how likely so few failures after would be if nothing had changed (Fisher, one-sided); "
      "corrected for all claims of this table (Holm), so that at most 1 table in 20 calls any rate "
      "lower that is not",
      "runs of branches that do not have the fix count as after it, too"};
  for (const ClaimedFix& fix : study.claimed_fixes) {
    const std::string command = proof_command(fix);
    if (fix.verdict == ClaimedFix::Verdict::lower || command.empty()) continue;
    table.remarks.push_back(
        "where runs do not tell, a failure that `unflake reproduce` has recorded does, as in `" +
        command + "`");
    break;
  }
  if (study.complete_since)
    table.remarks.push_back(
        fmt::format("runs from before {} were pruned: nothing older is compared",
                    timestamp_in_minutes(*study.complete_since)));
  return table;
}

}  // namespace unflake
