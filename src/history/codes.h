#pragma once

#include <cstdint>

#include "trace/outcome.h"

namespace unflake {

// The numbers that a history stores for these enumerations. They belong to the file format: an
// enumeration may be reordered or grow, its numbers stay. An unknown number reads as the most
// general failure, so that a damaged row is seen and breaks nothing.
int64_t code_of(OutcomeKind kind);
OutcomeKind outcome_from_code(int64_t code);

int64_t code_of(FailureKind kind);
FailureKind failure_from_code(int64_t code);

inline bool is_failing(OutcomeKind kind) {
  return kind != OutcomeKind::pass && kind != OutcomeKind::skipped;
}

}  // namespace unflake
