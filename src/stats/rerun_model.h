#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace unflake {

// How a run of a test ends, as chances; what is left is neither: it was skipped. Runs are taken to
// be independent of each other.
struct RunChances {
  double pass = 1;
  double fail = 0;

  static RunChances of_counts(int64_t passes, int64_t failures, int64_t others = 0);
};

struct RerunCost {
  RunChances chances;
  double seconds = 0;  // of one run
};

// U(n): the chance that n runs show both a pass and a failure. Added up from terms that are all
// positive, so rare failures and rare passes lose no digit.
double chance_unveiled(const RunChances& chances, uint64_t runs);

// E[R(n)]: how many of at most n runs are made when the first one that unveils the test is the
// last.
double expected_runs(const RunChances& chances, uint64_t most_runs);

// What rerunning every test at most so many times is expected to bring and to take.
struct RerunOutlook {
  uint64_t most_runs = 0;
  double detections = 0;  // E[F(n)]
  double runs = 0;
  double seconds = 0;
  bool operator==(const RerunOutlook&) const = default;
};
RerunOutlook outlook_of(std::span<const RerunCost> tests, uint64_t most_runs);

// The most runs of each test that such a time is expected to hold; `bound` at most.
uint64_t runs_within(std::span<const RerunCost> tests, double seconds, uint64_t bound);

// How many runs unveil a test with this chance, at least: 170 for 95 % of the median flaky test
// that was studied. None within `bound`: it may never.
uint64_t runs_to_unveil(const RunChances& chances, double confidence, uint64_t bound);

}  // namespace unflake
