#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scores.h"
#include "surroundings.h"

namespace unflake::eval {

// The section of docs/EVALUATION.md on data races begins with it.
constexpr const char* races_heading = "## Data races";

// Two lines of a program's own files that race, as FILE:LINE, the smaller name first.
using RacingLines = std::set<std::pair<std::string, std::string>>;

// What ThreadSanitizer has written about races. Both places are the innermost ones in a file below
// `folder`; a race without such a place is none of the program's.
RacingLines races_of_tsan(std::string_view output, std::string_view folder);

// The same of `unflake races --json`.
RacingLines races_of_unflake(const std::string& output, std::string_view folder);

struct MeasuredRaces {
  std::string program;
  bool is_sound = false;  // by its truth: no order of its threads makes it fail
  RacingLines tsan, unflake;
  double tsan_seconds = 0, unflake_seconds = 0;
};

struct RaceSettings {
  int tsan_runs = 20;
  int runs = 20;
};

std::vector<Score> race_scores(const std::vector<MeasuredRaces>& all);

std::string races_section(const std::vector<MeasuredRaces>& all, const RaceSettings& settings,
                          const Surroundings& where);

}  // namespace unflake::eval
