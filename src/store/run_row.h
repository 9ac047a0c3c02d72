#pragma once

#include <cstdint>
#include <tuple>

#include "store/values.h"

namespace unflake {

// A run as the tables hold it. The first four columns name it: what is recorded twice is there
// once.
struct RunRow {
  int64_t test = 0, started_us = 0, session = 0, attempt = 0;
  int64_t duration_us = 0, outcome = 0, signature = 0, plan = 0;

  auto by_session() const { return std::tie(session, test, started_us, attempt); }
  auto by_test() const { return std::tie(test, started_us, session, attempt); }

  bool has_duration() const { return duration_us >= 0; }

  // What an injected delay brings about says nothing of what a test does by itself.
  bool failed_by_itself() const { return plan == 0 && is_failing(outcome_from_code(outcome)); }
  bool passed_by_itself() const {
    return plan == 0 && outcome_from_code(outcome) == OutcomeKind::pass;
  }
};

#define UNFLAKE_RUN_COLUMNS \
  "test, started_us, session, attempt, duration_us, outcome, signature, plan"

}  // namespace unflake
