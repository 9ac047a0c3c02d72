#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/executed.h"

namespace unflake {

// How a set of functions divides tests.
struct ExposedShares {
  int64_t flaky_exposed = 0, flaky = 0;
  int64_t exposed = 0, all = 0;  // flaky or not

  double of_flaky() const { return share(flaky_exposed, flaky); }
  double of_all() const { return share(exposed, all); }
  bool operator==(const ExposedShares&) const = default;

 private:
  static double share(int64_t part, int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
  }
};

// A function that training has selected.
struct LearnedFunction {
  FunctionId function;
  ExposedShares alone;
  std::string cause;     // that the known set gives it, or else the one that it was optimised for
  int64_t groups = 0;    // with flaky tests that it exposes
  bool is_solo = false;  // at most one group: it may be about that group, not about flakiness
  bool is_cryptic = false;  // no root cause explains it

  bool stays() const { return !is_solo && !is_cryptic; }
};

// One set that was learned, or is compared with.
struct TrainedSet {
  std::string name;                        // "global", or a root cause
  std::vector<LearnedFunction> functions;  // in the order in which they were selected
  ExposedShares shares;                    // of all of them
  ExposedShares remaining;                 // without those that are solo or cryptic

  int64_t count(bool LearnedFunction::*trait) const;
  int64_t count_remaining() const;
};

// What sets that were learned without a part of the tests say about that part.
struct CrossValidation {
  struct Fold {
    size_t functions = 0;
    ExposedShares shares;
  };
  std::vector<Fold> folds;

  double least(double (ExposedShares::*share)() const) const;
  double mean(double (ExposedShares::*share)() const) const;
  double most(double (ExposedShares::*share)() const) const;
};

// What `unflake train` has learned, and from what.
struct TrainingReport {
  int64_t labelled = 0;  // flaky tests with a root cause
  std::string groups;    // what a group of tests is here: "project", "target", "class"
  TrainedSet global;
  std::vector<TrainedSet> causes;  // of labelled tests; their union is a set as well
  ExposedShares union_of_causes;
  ExposedShares known;         // the set that was known before
  CrossValidation validation;  // of the global set; no folds: there are too few flaky tests
  std::vector<std::string> notes;
};

}  // namespace unflake
