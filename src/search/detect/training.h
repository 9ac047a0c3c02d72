#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/executed.h"
#include "search/detect/characteristic.h"

namespace unflake {

// Tests of which it is known whether they are flaky, and what they execute.
struct TrainingTest {
  std::string group;  // the project, target or class that it belongs to
  bool is_flaky = false;
  std::string cause = "";             // its root cause, where that is known
  std::vector<uint32_t> functions{};  // numbers in TrainingSet::functions
};

struct TrainingSet {
  std::vector<FunctionId> functions;
  std::vector<TrainingTest> tests;
};

// The weighted harmonic mean of precision and recall: recall counts `beta` times as much. 0 when
// nothing is found.
double f_beta(const ExposedShares& shares, double beta);

// A set of tests, or the tests that execute something, as bits.
class TestBits {
 public:
  explicit TestBits(size_t tests) : words_((tests + 63) / 64) {}

  void set(size_t test) { words_[test / 64] |= uint64_t{1} << (test % 64); }
  bool has(size_t test) const { return (words_[test / 64] >> (test % 64) & 1) != 0; }
  int64_t count() const;
  // Of those that are in both, how many are in neither of the tests seen before.
  int64_t count_new(const TestBits& among, const TestBits& seen) const;
  void add(const TestBits& other);

 private:
  std::vector<uint64_t> words_;
};

// The greedy optimiser (Algorithm 1 of the thesis): begins with no function, and adds the one that
// makes the F-score highest as long as it becomes higher. Of equals, the first one.
class FunctionOptimiser {
 public:
  // Only these tests count; a flaky one is any that is `wanted`.
  FunctionOptimiser(const TrainingSet& training, std::span<const size_t> tests,
                    const std::vector<bool>& wanted);

  // Numbers of functions, in the order in which they were added.
  std::vector<uint32_t> operator()(std::span<const uint32_t> candidates, double beta) const;

  ExposedShares shares(std::span<const uint32_t> functions) const;

 private:
  ExposedShares with(const TestBits& column, const TestBits& seen,
                     const ExposedShares& before) const;

  size_t tests_;
  TestBits wanted_, all_;
  std::vector<TestBits> columns_;  // by function: the tests that execute it
};

struct TrainingOptions {
  double beta = 5;         // for all flaky tests together
  double cause_beta = 24;  // for those of one root cause, which are rarer
  std::vector<FunctionKind> kinds = {FunctionKind::call, FunctionKind::library};
  size_t folds = 5;
  uint64_t seed = 1;
  int64_t least_flaky = 3;  // fewer flaky tests of a cause say nothing about it
};

// Learns sets from tests, and looks at them as the thesis does. `known` says which root cause a
// function is known to hint at.
TrainingReport train(const TrainingSet& training, const CharacteristicSet& known,
                     const TrainingOptions& options);

// What remains of a report as a set that detection can use, each function with its evidence.
CharacteristicSet learned_set(const TrainingReport& report);

}  // namespace unflake
