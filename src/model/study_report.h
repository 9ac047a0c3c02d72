#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "stats/distribution.h"
#include "stats/rates.h"
#include "util/time.h"

namespace unflake {

// The numbers of a study of flaky tests, as history/study.h computes them and the report shows
// them. Rows are of one project each.

struct PrevalenceRow {
  std::string project;
  int64_t tests = 0, builds = 0, failed_builds = 0, runs = 0;
  Duration median_build{};
  int64_t flaky_tests = 0, flaky_failures = 0, flaky_builds = 0, suppressed = 0;
};

struct FlakyTestRow {
  std::string project;
  int64_t flaky = 0;                       // tests that were ever flaky
  int64_t closed = 0;                      // of these, those with nothing open and no failure since
  int64_t with_commit = 0, with_link = 0;  // of the closed ones
  int64_t never_flaky = 0;                 // other tests, put in quarantine or reported anyway
};

struct RateRow {
  std::string project;
  int64_t tests = 0, runs = 0;
  int64_t both = 0;          // tests with a pass and a failure among the runs
  int64_t on_demand = 0;     // tests with a repro
  int64_t other_repros = 0;  // of tests that no recorded run has shown to be flaky
  Spread rates;              // failure rates of `both`
};

struct RunTimes {
  int64_t runs = 0;
  Duration mean{};    // over all runs
  Duration median{};  // of the tests' medians
};

struct RunTimeRow {
  enum class Tendency { longer, shorter, unclear };
  std::string project;
  RunTimes passing, failing;
  int64_t longer = 0, shorter = 0, same = 0;  // tests, by their median failing run
  double p = 1;                               // of the sign test over them
  double ratio = 0;                           // the median test's: failing by passing
  Tendency tendency = Tendency::unclear;
};

enum class FixPlace { source, test, both, other };
constexpr std::array all_fix_places{FixPlace::source, FixPlace::test, FixPlace::both,
                                    FixPlace::other};
std::string_view to_string(FixPlace place);

enum class FixKind { longer_wait, callback, polling, removal, mocking, hard_to_say };
constexpr std::array all_fix_kinds{FixKind::longer_wait, FixKind::callback, FixKind::polling,
                                   FixKind::removal,     FixKind::mocking,  FixKind::hard_to_say};
std::string_view to_string(FixKind kind);

struct CategoryRow {
  std::string name;
  int64_t tests = 0;
};

// A fix is a test and the commit that is said to have fixed it.
struct FixCounts {
  int64_t fixes = 0, commits = 0;
  int64_t unreadable = 0;  // fixes whose commit is not in this repository
  std::array<int64_t, all_fix_places.size()> places{};
  std::array<int64_t, all_fix_kinds.size()> kinds{};
  int64_t async_fixes = 0;
  std::array<int64_t, all_fix_kinds.size()> async_kinds{};
};

struct CategoryCounts {
  std::vector<CategoryRow> causes;  // most tests first
  int64_t tests = 0;                // flaky ones
  int64_t explained = 0;            // of these
  FixCounts fixes;
};

struct RepairTimeRow {
  std::string project;
  Spread closed;      // days, of those that were closed
  Survival survival;  // days, of all
};

struct Reoccurrence {
  std::string project;
  TestId test;
  std::string signature;
  TimePoint closed, again;
  std::string commit;
};

struct ReoccurrenceCounts {
  int64_t tests = 0;               // with a claimed fix
  int64_t tests_again = 0;         // of these, flaky again
  int64_t tests_only_failing = 0;  // others that failed since, but never where they also passed
  Spread days;                     // from the claim to the next failure
  std::vector<Reoccurrence> all;
};

struct Tries {
  int64_t failures = 0, runs = 0;
};

struct ClaimedFix {
  enum class Verdict { lower, not_lower, too_few_runs, nothing_to_compare };
  std::string project;
  TestId test;
  std::string signature;
  TimePoint at;
  std::string commit;
  Tries before;  // without the failure that led to the fix
  Tries after;
  double p = 1;            // of a rate as low after the claim if nothing had changed
  double p_corrected = 1;  // for the number of claims
  Verdict verdict = Verdict::nothing_to_compare;
  std::optional<int64_t> more_runs;  // without a failure, that would tell
};

std::string_view to_string(ClaimedFix::Verdict verdict);

struct Study {
  TimePoint from, until;  // of prevalence; all else is of everything up to `until`
  std::optional<TimePoint> complete_since;  // runs from before may be gone; claims look not there
  std::vector<PrevalenceRow> prevalence;
  std::vector<FlakyTestRow> flaky_tests;
  std::vector<RateRow> rates;
  std::vector<RunTimeRow> run_times;
  CategoryCounts categories;
  std::vector<RepairTimeRow> repair_times;
  ReoccurrenceCounts reoccurrences;
  std::vector<ClaimedFix> claimed_fixes;
  std::vector<std::string> notes;  // what could not be looked at, and how to change that
};

}  // namespace unflake
