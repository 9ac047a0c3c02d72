#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/study_report.h"
#include "store/store.h"
#include "store/values.h"

namespace unflake {

struct CommitChange {
  std::vector<std::string> paths;
  std::string diff;   // unified
  bool whole = true;  // false: the diff was too long to be kept
};

// What was done about a wait, from the words of a diff: any language, no parsing. A fix may be of
// several kinds; one that is of none, or that touches too much to be read, is hard to say.
std::vector<FixKind> fix_kinds(const CommitChange& change);

bool is_code_path(std::string_view path);

// By its path: in a folder that says so (test, tests, testing, spec, x_tests ...), or with a name
// that does (test_x, x_test, XTest, x.spec).
bool is_test_path(std::string_view path);

// Where a fix was made. Files that only people read do not count; any other file that is not code
// makes it `other`. `test_files` are known to hold tests whatever their names.
FixPlace fix_place(const std::vector<std::string>& paths,
                   const std::vector<std::string>& test_files);

// One time that a failure of a test was known to be flaky: from its first failure, its report or
// its quarantine on, until somebody claimed that it was gone by closing or lifting these.
struct FlakyEpisode {
  TestId test;
  std::string signature;
  TimePoint opened;
  std::optional<TimePoint> closed;
  std::string commit, url;  // of the fix and of the report, where they are known
  bool came_back = false;   // an earlier one of the same failure had been closed
  std::optional<TimePoint> last_failure;
};

// It was claimed to be over, and has not failed since.
bool is_settled(const FlakyEpisode& episode);

// Oldest first for each failure. An step without a signature is about all failures of its test.
std::vector<FlakyEpisode> episodes_of(const std::vector<FlakyFailure>& failures,
                                      std::vector<LifecycleStep> steps);

// A window before and one after a claim, as far as no other claim about the same failure is in
// them and all runs are `known`. The one before is as long as the one after, or 30 days when that
// is longer.
struct ClaimWindows {
  Window before, after;
};

ClaimWindows windows_of(const std::vector<FlakyEpisode>& episodes, size_t claim,
                        const Window& known);

// All that a study needs to know about one project, read from its history once.

struct FlakyTestRuns {
  TestId test;
  int64_t passes = 0, failures = 0;
  DurationSummary passing, failing;
  bool has_repro = false;
  std::string category;  // of the root cause that the repro's explanation names; empty: unknown
};

// What runs say about the claim that closed an episode.
struct ClaimEvidence {
  size_t episode = 0;
  RunCounts before, after;
  std::optional<TimePoint> again;  // the first flaky failure since
};

struct ProjectFacts {
  std::string project;
  std::optional<Prevalence> prevalence;
  std::vector<FlakyFailure> failures;  // ever
  std::vector<FlakyEpisode> episodes;
  int64_t never_flaky = 0;  // tests of which lifecycle steps tell, but no flaky failure
  std::vector<FlakyTestRuns> tests;
  int64_t other_repros = 0;  // of tests that are not among them
  std::vector<ClaimEvidence> claims;
  std::optional<TimePoint> complete_since;
  std::vector<CauseRecord> causes;
  std::map<std::string, std::optional<CommitChange>> commits;  // none: not in this repository
  std::vector<std::string> notes;
};

struct StudyQuestion {
  Window window;  // of prevalence; all else covers everything until its end
  std::string project;
  std::map<TestId, std::string> repros;  // and the category of each, which may be empty
  std::function<std::optional<CommitChange>(const std::string& commit)> change_of;
  // What takes time and is left out when it is not asked for: runs of each flaky test, evidence
  // about claims, changes of commits.
  bool with_runs = true, with_claims = true, with_commits = true;
};

Result<ProjectFacts> gather_facts(Store& store, const StudyQuestion& question);

// The tables of a study, each from the facts of all projects. Pure: the same facts give the same
// numbers.
Study compute_study(const std::vector<ProjectFacts>& projects, const Window& window);

PrevalenceRow compute_prevalence(const ProjectFacts& facts);
FlakyTestRow compute_flaky_tests(const ProjectFacts& facts);
RateRow compute_rates(const ProjectFacts& facts);
RunTimeRow compute_run_times(const ProjectFacts& facts);
RepairTimeRow compute_repair_times(const ProjectFacts& facts, TimePoint until);
CategoryCounts compute_categories(const std::vector<ProjectFacts>& projects);
ReoccurrenceCounts compute_reoccurrences(const std::vector<ProjectFacts>& projects);
// The share of wrong verdicts `lower` that is accepted over all claims together.
constexpr double claim_error = 0.05;
std::vector<ClaimedFix> compute_claimed_fixes(const std::vector<ProjectFacts>& projects);

}  // namespace unflake
