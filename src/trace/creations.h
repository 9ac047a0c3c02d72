#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace unflake {

inline constexpr size_t no_event = static_cast<size_t>(-1);

// For each thread the event of its creator (pthread_create, fork ...) that began it. A thread is
// named after that call, and the n-th of a name is of the n-th such call; when it first ran says
// less, because later ones may have overtaken it.
std::vector<size_t> find_creations(const Trace& trace);

// The base name of the program that the thread runs in, as an intervention wants it.
std::string executable_of(const Trace& trace, const TracedThread& thread);

}  // namespace unflake
