#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store.h"
#include "util/time.h"

namespace unflake {

// How many tests both failed and passed, whatever reports and cases contain them. Tests are known
// by a hash of their id, and beyond a million of them new ones are left out.
class FlakyTests {
 public:
  void add(std::span<const RunRecord> runs);
  int64_t count() const { return count_; }

 private:
  std::unordered_map<uint64_t, uint8_t> seen_;
  int64_t count_ = 0;
};

// The results of a build, whatever reports they come from, test by test. For a test that never
// failed two counts are kept under a hash of its id, so memory grows only with failures.
class BuildResults {
 public:
  struct Bounds {
    size_t tests = 1'000'000;  // about 50 MB
    size_t failed_tests = 20'000;
    size_t failures = 32;  // of one test, that differ
  };

  struct SeenFailure {
    Outcome outcome;  // of the first run that failed this way
    int runs = 0;
    std::set<SessionId> sessions;
  };
  struct FailedTest {
    std::vector<SeenFailure> failures;
    int runs = 0;                        // that failed
    Duration latest = unknown_duration;  // how long the last run took whose time is known
  };
  struct TestCounts {
    int passed = 0, skipped = 0;  // tests that never failed
    int64_t passes = 0, skips = 0;
  };

  BuildResults() = default;
  explicit BuildResults(Bounds bounds) : bounds_(bounds) {}

  void add(SessionId session, std::span<const RunRecord> runs);

  const std::map<TestId, FailedTest>& failed() const { return failed_; }
  Tally tally_of(const TestId& test) const;
  TestCounts others() const;

  const Bounds& bounds() const { return bounds_; }
  // What the bounds left out.
  int64_t failures_left_out() const { return failures_left_out_; }
  int64_t passes_left_out() const { return passes_left_out_; }

 private:
  struct Passes {
    uint32_t passes = 0, skips = 0;
  };

  void add_failure(SessionId session, const RunRecord& run);
  void add_other(const RunRecord& run);

  Bounds bounds_;
  std::map<TestId, FailedTest> failed_;
  std::unordered_map<uint64_t, Passes> others_;  // by hash of the id; of failed tests too
  int64_t failures_left_out_ = 0, passes_left_out_ = 0;
};

}  // namespace unflake
