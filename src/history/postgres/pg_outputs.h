#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "history/postgres/pg_connection.h"
#include "history/run_row.h"

namespace unflake {

struct KeptOutput {
  RunRow run;
  std::string output;
};

// The outputs of failing runs: the newest ones of each signature of a test. Failures with the same
// signature look alike, so few outputs tell as much as all of them.
class PgOutputs {
 public:
  explicit PgOutputs(PgConnection& connection) : connection_(connection) {}

  // No, when a test fails again and again and enough of that has been kept a moment ago.
  bool wants(const RunRow& run);
  void keep(const std::vector<KeptOutput>& outputs);

 private:
  struct Series {
    int64_t kept = 0, last_us = 0;
  };
  PgConnection& connection_;
  std::map<std::pair<int64_t, int64_t>, Series> series_;  // by test and signature
};

}  // namespace unflake
