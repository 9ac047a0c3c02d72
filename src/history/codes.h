#pragma once

#include <cstdint>

#include "history/lifecycle.h"
#include "trace/outcome.h"

namespace unflake {

// The numbers that a history stores for these enumerations. They belong to the file format: an
// enumeration may be reordered or grow, its numbers stay. An unknown number reads as the most
// general one, so that a damaged row is seen and breaks nothing.
int64_t code_of(OutcomeKind kind);
OutcomeKind outcome_from_code(int64_t code);

int64_t code_of(FailureKind kind);
FailureKind failure_from_code(int64_t code);

int64_t code_of(LifecycleEvent::Kind kind);
LifecycleEvent::Kind lifecycle_from_code(int64_t code);

int64_t code_of(CauseRecord::State state);
CauseRecord::State cause_state_from_code(int64_t code);

}  // namespace unflake
