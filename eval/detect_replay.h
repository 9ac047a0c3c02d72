#pragma once

#include <map>
#include <string>
#include <vector>

#include "ingest/rates_file.h"
#include "scores.h"
#include "search/detect/rerun_scheduler.h"
#include "stats/distribution.h"
#include "stats/rates.h"
#include "surroundings.h"

namespace unflake::eval {

// The section of docs/EVALUATION.md on finding flaky tests begins with it.
constexpr const char* detect_heading = "## Finding flaky tests";

struct ReplaySettings {
  uint64_t most_runs = 170;  // of each test, when everything is rerun
  int repetitions = 20;
  uint64_t seed = 1;
  double patience = 3;  // a replay ends after so many times what rerunning everything takes
};

// A project whose tests fail at random, each as often as it really did.
struct ReplayedProject {
  std::string name;
  std::vector<RatedRuns> tests;
  RerunOutlook everything;  // what rerunning every test is expected to bring
  RerunPrior prior;         // learned from all other projects
};

std::vector<ReplayedProject> projects_of(const std::vector<RatedRuns>& rates,
                                         const ReplaySettings& settings);

// When tests were seen to both pass and fail, in seconds from the start, in each repetition.
using Detections = std::vector<std::vector<double>>;

// Projects that share one clock: the next run is the most promising one of all.
Detections replay(const std::vector<const ReplayedProject*>& projects, const RerunOptions& options,
                  const ReplaySettings& settings);

// When so many were found: of one repetition, and of all of them on average. Infinite: never.
double time_until(const std::vector<double>& found, double wanted);
double time_until(const Detections& found, double wanted);

struct ReplayResult {
  std::vector<const ReplayedProject*> projects;
  RerunOutlook everything;
  Detections found;

  double share_of_time() const;   // until as many are found as by rerunning everything
  Spread shares_of_time() const;  // the same of each repetition
  Spread found_in_half_the_time() const;
};

ReplayResult replay_result(const std::vector<const ReplayedProject*>& projects,
                           const ReplaySettings& settings);

struct DetectFigures {
  ReplaySettings settings;
  std::string source;
  ReplayResult together;
  std::vector<ReplayResult> alone;

  double time_alone() const;  // of all projects one after the other, as a share
};

std::vector<Score> detect_scores(const DetectFigures& figures);
std::string detect_section(const DetectFigures& figures, const Surroundings& where);

}  // namespace unflake::eval
