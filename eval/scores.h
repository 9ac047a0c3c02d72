#pragma once

#include <string>
#include <vector>

#include "measurement.h"
#include "truth.h"

namespace unflake::eval {

struct Measured {
  const Truth* truth = nullptr;
  const Measurement* result = nullptr;

  bool reproduced() const { return result->search.found && result->search.is_truth; }
  bool always_comes_back(Replays Measurement::*which) const;
  const Search* alone(const std::string& strategy) const;
};

// One figure with its target.
struct Score {
  std::string figure;
  std::string measured;
  std::string target;  // empty: none
  bool met = true;
};

// Whether an explanation names what the truth does; lines may be off by one.
struct Agreement {
  bool asked = false;  // the truth names it
  bool place = false;
  bool caller = false;  // only the line that called the place
  bool any() const { return place || caller; }
};

struct ExplanationCheck {
  bool category = false;
  Agreement critical, barrier;
};

ExplanationCheck check(const Truth& truth, const Explained& explained);

std::vector<Measured> late_ones(const std::vector<Measured>& all);
std::vector<Measured> others(const std::vector<Measured>& all);  // that must not be reported

std::vector<Measured> of_family(const std::vector<Measured>& all, const std::string& family);

// The table of targets, in a fixed order.
std::vector<Score> scores_of(const std::vector<Measured>& all, const EvalSettings& settings);

}  // namespace unflake::eval
