#pragma once

#include "search/reproduce/hunt.h"

namespace unflake {

// Where in a passing run the failure would be: what comes after it cannot be its cause.
struct FailurePoint {
  uint32_t thread = no_index;  // of the trace; no_index: not known
  Duration at{};               // when the trace ends, if not known
  std::string how;             // it was found, in words
};

// By the wanted line where it was watched, else by stacks: the last call from that line, then from
// that function, then the one whose stack begins most like that of a recorded failure (the longest
// common part from the outside, over the length of the longer stack).
FailurePoint find_failure_point(const Trace& trace, const Wanted& wanted,
                                const TracedFailure* recorded = nullptr);

// With what the hunt is after, and the stack of that failure if a profiling run showed it.
FailurePoint find_failure_point(const Trace& trace, const Hunt& hunt);

}  // namespace unflake
