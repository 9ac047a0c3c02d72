#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "history/sqlite/database.h"
#include "history/sqlite/totals.h"

namespace unflake {

// The outputs of failing runs: the newest ones of each signature of a test. Failures with the same
// signature look alike, so few outputs tell as much as all of them.
class Outputs {
 public:
  explicit Outputs(Database& database);

  // No, when a test fails again and again and enough of that has been kept a moment ago: writing
  // outputs costs more than everything else about a run.
  bool wants(int64_t test, int64_t signature, int64_t started_us) const;
  void keep(const RunRow& run, std::string_view output);
  void forget_series() { series_.clear(); }

 private:
  struct Series {
    int64_t next_slot = 0;
    int64_t kept = 0;
    int64_t last_us = 0;
  };
  int64_t first_slot(const RunRow& run);
  void make_room(int64_t test);

  Database& database_;
  Statement replace_;
  std::map<std::pair<int64_t, int64_t>, Series> series_;  // by test and signature
};

}  // namespace unflake
