#pragma once

#include <cstdint>

#include "history/sqlite/database.h"
#include "history/totals.h"

namespace unflake {

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
