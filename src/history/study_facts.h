#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "history/episodes.h"
#include "history/fix_kind.h"
#include "history/store.h"

namespace unflake {

// All that a study needs to know of one project, read from its history once.

struct FlakyTestRuns {
  TestId test;
  int64_t passes = 0, failures = 0;
  DurationSummary passing, failing;
  bool has_repro = false;
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
  std::vector<FlakyTestRuns> tests;
  std::vector<ClaimEvidence> claims;
  std::optional<TimePoint> complete_since;
  std::vector<CauseRecord> causes;
  std::map<std::string, std::optional<CommitChange>> commits;  // none: not in this repository
  std::vector<std::string> notes;
};

struct StudyQuestion {
  Window window;  // of prevalence; all else is of everything until its end
  std::string project;
  std::set<TestId> with_repro;
  std::function<std::optional<CommitChange>(const std::string& commit)> change_of;
};

Result<ProjectFacts> gather_facts(Store& store, const StudyQuestion& question);

}  // namespace unflake
