#pragma once

#include <vector>

#include "model/events.h"

namespace unflake::golden {

// An interrupted session with retries in which everything happens that can happen to a test.
std::vector<Event> session_with_retries();

// A hundred runs of each of three tests: one always passes, one never, one is flaky in two ways.
std::vector<Event> session_with_repeats();

// A gate decides: of each of its decisions one, with a test that runs more often than the others.
std::vector<Event> session_with_gate();

}  // namespace unflake::golden
