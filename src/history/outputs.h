#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "history/sqlite.h"
#include "history/totals.h"

namespace unflake {

// The outputs of failing runs: the newest ones of each signature of a test. Failures with the same
// signature look alike, so few outputs tell as much as all of them.
class Outputs {
 public:
  explicit Outputs(Database& database);

  void keep(const RunRow& run, std::string_view output);
  void forget_slots() { next_slot_.clear(); }

 private:
  int64_t first_slot(const RunRow& run);
  void make_room(int64_t test);

  Database& database_;
  Statement replace_;
  std::map<std::pair<int64_t, int64_t>, int64_t> next_slot_;  // by test and signature
};

}  // namespace unflake
