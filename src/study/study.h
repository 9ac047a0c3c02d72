#pragma once

#include <vector>

#include "model/study_report.h"
#include "study/study_facts.h"

namespace unflake {

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
