#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <ranges>

#include "history/histogram.h"
#include "history/sqlite/database.h"
#include "history/sqlite/run_row.h"

namespace unflake {

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
  auto of_test(int64_t test) const {
    return std::ranges::subrange(totals.lower_bound({test, INT64_MIN, INT64_MIN}),
                                 totals.upper_bound({test, INT64_MAX, INT64_MAX}));
  }
};

// A damaged count, cut to what no sum of them overflows.
int64_t sane_count(int64_t count);

// What the tables and the runs that are not in them yet say together; without the histograms of
// the tables.
Totals read_totals(Database& database);
Totals read_totals(Database& database, int64_t test);

// Adds them to what the tables `totals` and `histograms` hold.
class TotalsTables {
 public:
  explicit TotalsTables(Database& database);
  void add(const Totals& totals);

 private:
  Statement add_total_;
  Statement add_bucket_;
};

}  // namespace unflake
