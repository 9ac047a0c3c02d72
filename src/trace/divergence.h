#pragma once

#include <optional>

#include "trace/trace.h"

namespace unflake {

// When, in the failing run, a thread first did something else than in the passing one: a call that
// it does not make there, one less, or one that ended differently. What decides came before.
std::optional<Duration> divergence(const Trace& passing, uint32_t passing_thread,
                                   const Trace& failing, uint32_t failing_thread);

// The same for calls alone that the system refused in the failing run and not in the other.
std::optional<Duration> first_error(const Trace& passing, uint32_t passing_thread,
                                    const Trace& failing, uint32_t failing_thread);

}  // namespace unflake
