#pragma once

#include "explain/call_order.h"
#include "explain/explanation.h"
#include "trace/names.h"

namespace unflake {

// The points of an order in the words of an explanation.
Moment moment_of(const CallOrder& order, const Point& point);

// "queue.cc:57", else the function.
std::string short_place(const CodeSpot& place);

// Where the failing thread left the test's own code, when that has no debug information and its
// calls were not traced: the function's name. Empty: it was seen.
std::string unseen_failing_function(const Trace& trace);

// Whether the place has a line or at least a function, and not just an address in an image.
bool has_name(const Trace& trace, const CodeSpot& place);

// The sleeps and timed waits after which the second point comes, if any.
std::optional<CoveringWait> covering_wait(const CallOrder& order, const PointPair& pair);

}  // namespace unflake
