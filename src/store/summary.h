#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "store/store.h"
#include "store/totals.h"

namespace unflake {

// The steps from a test's totals to its summary that no database has a part in.

// Everything but quantiles and signatures.
TestSummary summary_of(const TestId& id, const Totals& totals, int64_t test);

struct MeasuredDurations {
  struct Known {
    std::vector<int64_t> values;  // microseconds
    int64_t unknown = 0;          // runs of which nobody told how long they took
  };
  Known passes, failures;

  void add(int64_t outcome, int64_t duration_us);
};
void set_exact_quantiles(MeasuredDurations durations, TestSummary& summary);
void set_approximate_quantiles(const Histogram& passes, const Histogram& failures,
                               TestSummary& summary);

// The most frequent failures, most frequent first; the summary gets the number of all.
std::vector<std::pair<TotalKey, Total>> frequent_failures(const Totals& totals, int64_t test,
                                                          TestSummary& summary);

// Without what the signature's and the sessions' rows tell.
SignatureSummary signature_summary_of(const TotalKey& key, const Total& total);

// A list of tests has the least reliable one first. One failure of one run proves less than fifty
// of a hundred, so its place comes from the lower end of the interval, at 95 % confidence.
double sure_failure_rate(int64_t failures, int64_t runs);

}  // namespace unflake
