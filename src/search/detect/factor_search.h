#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "model/detect_report.h"
#include "search/trial/trial_runner.h"

namespace unflake {

// One factor other than usual, to some degree.
struct FactorLevel {
  std::string factor;  // "time zone"
  Conditions conditions;
  // What would have to differ, too, if the factor itself were not the cause: a clock that was
  // moved to an ordinary day.
  bool is_control = false;
  bool is_seed = false;  // compared with other seeds, not with runs without one
};

// What a machine has that decides which levels there are.
struct FactorFacts {
  std::chrono::system_clock::time_point now;
  int cores = 1;
  std::vector<std::string> locales;  // that are installed, of wanted_locales()
};

// One with a decimal comma, one with other rules for letters, and so on.
std::vector<std::string> wanted_locales();

struct FactorLevels {
  std::vector<FactorLevel> levels;
  std::vector<FactorReport::NotTried> not_tried;
};
FactorLevels factor_levels(const FactorFacts& facts);

struct FactorOptions {
  Duration timeout = std::chrono::seconds(60);
  std::vector<std::string> only;  // factors; empty: all
};

// Runs a test with one factor at a time other than usual, and names those that change its outcome.
FactorReport look_for_factors(TrialRunner& runner, std::shared_ptr<const Test> test,
                              const FactorLevels& levels, const FactorOptions& options);

}  // namespace unflake
