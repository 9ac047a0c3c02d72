#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "model/trace.h"

namespace unflake {

// "project", "call", "library".
std::string_view to_string(FunctionKind kind);
std::optional<FunctionKind> function_kind_from(std::string_view name);

// A function as it is known in every build: by its name and the file that it is written in, never
// by an address or a line.
struct FunctionId {
  FunctionKind kind = FunctionKind::project;
  std::string name;
  std::string file{};  // as sites name it; only of project code, and not always known

  auto operator<=>(const FunctionId&) const = default;
};

// Whether a name matches a glob in which `\*` is the star of a pointer.
bool names_function(std::string_view glob, std::string_view name);

// What a run executed, each function once and in order: those that were traced, and every timing
// API that project code called, by itself or through other libraries.
std::vector<FunctionId> executed_functions(const Trace& trace);

// What many tests executed: names are there once, tests have numbers.
struct FunctionTraces {
  struct OfTest {
    TestId test;
    std::chrono::system_clock::time_point at{};
    std::string commit;
    std::vector<uint32_t> functions;  // in `functions` below, ascending
  };
  std::vector<FunctionId> functions;
  std::vector<OfTest> tests;
};

// A root cause that a test is exposed to, by functions that it executed.
struct Exposure {
  std::string cause;
  std::vector<std::string> functions;  // in order

  bool operator==(const Exposure&) const = default;
};

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
