#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surroundings.h"
#include "util/result.h"

namespace unflake::eval {

// What one `unflake reproduce` came to.
struct Search {
  std::string strategies;    // that were asked for; empty: the default ones
  bool found = false;        // it reported a reproduction
  bool is_truth = false;     // and it is of the failure that the truth names
  bool is_inverted = false;  // a plan under which a test passes that mostly fails
  bool says_broken = false;
  std::string found_by;
  std::string failure;  // that was reproduced, as a headline
  std::string plan;
  int runs = 0;      // search runs until the plan was first tried
  int all_runs = 0;  // search runs altogether
  int64_t elapsed_us = 0;
  int64_t slack_passes_us = -1, slack_fails_us = -1;  // -1: not measured
  std::vector<std::string> notes;                     // what it said when it found nothing
};

struct Replays {
  int runs = 0;
  int as_recorded = 0;  // failed like that; of an inverted one, passed
  std::string otherwise;
};

// What `unflake explain` names; places are FILE:LINE.
struct Explained {
  std::string cause;
  std::string critical, critical_caller;
  std::string barrier, barrier_caller;
  int64_t elapsed_us = 0;
  std::vector<std::string> contradictions{};  // between its words and its own experiments
};

struct Reruns {
  int runs = 0;
  int hits = 0;  // with the failure that the truth names
  int64_t elapsed_us = 0;
};

struct Measurement {
  std::string program;
  Search search;
  Replays replays;
  Replays busy_replays;  // beside busy processes
  Explained explained;
  std::vector<Search> compared;  // one strategy each
  Reruns reruns;
};

// How the figures came about.
struct EvalSettings {
  int replays = 100;
  int jobs = 2;
  int reruns = 200;
  int rerun_jobs = 4;
  int busy = 8;  // processes beside the second replays
  int64_t budget_us = 60'000'000;
  int64_t strategy_budget_us = 5'000'000;
  bool with_strategies = false;
};

struct Results {
  EvalSettings settings;
  Surroundings where;
  std::vector<Measurement> programs;
};

std::string results_json(const Results& results);
Result<Results> parse_results(const std::string& text, const std::string& path);

}  // namespace unflake::eval
