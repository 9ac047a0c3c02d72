#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "store/store.h"
#include "store/values.h"

namespace unflake {

// Counts of durations on a logarithmic scale: 32 buckets for each power of two, so that a quantile
// is at most 1.6 % off, from a microsecond to a million years.
class Histogram {
 public:
  static int bucket_of(int64_t microseconds);
  static int64_t middle_of(int bucket);

  void add(int bucket, int64_t runs);
  int64_t quantile(double fraction) const;  // 0 when empty

  struct Bucket {
    int number = 0;
    int64_t runs = 0;
  };
  int64_t runs() const { return runs_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }  // in order

 private:
  std::vector<Bucket> buckets_;
  int64_t runs_ = 0;
};

// What runs of one test with one outcome and one signature say together.
struct Total {
  int64_t runs = 0;
  double sum_us = 0;
  int64_t min_us = 0, max_us = 0;
  int64_t first_us = 0, first_session = 0;
  int64_t last_us = 0, last_session = 0;

  void merge(const Total& other);
};

struct TotalKey {
  int64_t test = 0, outcome = 0, signature = 0;
  auto operator<=>(const TotalKey&) const = default;
};

struct HistogramKey {
  int64_t test = 0;
  bool failing = false;
  auto operator<=>(const HistogramKey&) const = default;
};

struct Totals {
  std::map<TotalKey, Total> totals;
  std::map<HistogramKey, Histogram> durations;  // of passing and of failing runs

  void add(const RunRow& run);
  Histogram durations_of(int64_t test, bool failing) const;
  auto of_test(int64_t test) const {
    return std::ranges::subrange(totals.lower_bound({test, INT64_MIN, INT64_MIN}),
                                 totals.upper_bound({test, INT64_MAX, INT64_MAX}));
  }
};

// A damaged count, cut to what no sum of them overflows.
int64_t sane_count(int64_t count);

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

// The plain runs and the trials of a batch. Most batches are of one kind, and then nothing is
// copied.
class SplitRuns {
 public:
  explicit SplitRuns(std::span<const RunRecord> runs);
  SplitRuns(const SplitRuns&) = delete;
  SplitRuns& operator=(const SplitRuns&) = delete;
  std::span<const RunRecord> plain() const { return runs_.first(plain_); }
  std::span<const RunRecord> trials() const { return runs_.subspan(plain_); }

 private:
  std::vector<RunRecord> sorted_;
  std::span<const RunRecord> runs_;
  size_t plain_ = 0;
};

// What one session ran of one target.
struct SessionTests {
  struct Ran {
    TestId test;
    bool failed = false;  // in one of its runs at least
  };

  TimePoint started;
  std::string command_line;
  bool finished = true;
  std::vector<Ran> tests = {};
};

// Reads what failed last out of sessions that come newest first.
class LastFailuresReader {
 public:
  static constexpr int64_t most_sessions = 1000;  // further back nobody looks

  explicit LastFailuresReader(std::string target) : target_(std::move(target)) {}

  // False when it knows enough.
  bool take(const SessionTests& session);
  std::optional<LastFailures> result() const { return found_; }

 private:
  std::string target_;  // empty: that of the first session
  std::set<TestId> seen_;
  std::optional<LastFailures> found_;
};

}  // namespace unflake
