#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "history/sqlite/database.h"
#include "history/sqlite/totals.h"
#include "history/store.h"

namespace unflake {

// Turns the totals of tests into summaries, and looks up what they do not hold: quantiles,
// failures, commits.
class Summariser {
 public:
  // Tests with up to `exact_up_to` runs get exact quantiles, which takes reading all of the runs.
  Summariser(Database& database, const Totals& totals, int64_t exact_up_to);

  TestSummary summarise(const TestId& id, int64_t test);

 private:
  void add_exact_quantiles(int64_t test, TestSummary& summary);
  void add_approximate_quantiles(int64_t test, TestSummary& summary);
  void add_signatures(int64_t test, TestSummary& summary);
  SignatureSummary describe(const TotalKey& key, const Total& total);
  std::string commit_of(int64_t session);

  const Totals& totals_;
  int64_t exact_up_to_;
  Database& database_;
  Statement runs_;
  Statement histograms_;
  Statement signature_;
  Statement commit_;
};

}  // namespace unflake
