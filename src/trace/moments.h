#pragma once

#include "trace/event_order.h"
#include "trace/explanation.h"

namespace unflake {

// The points of an order in the words of an explanation.
Moment moment_of(const EventOrder& order, const Point& point);

// "main at pool.cc:31"; empty for a process's first thread.
std::string started_by(const Trace& trace, uint32_t thread);

// A thread's name, or "a thread" when it is not known.
std::string name_of_thread(const Trace& trace, uint32_t thread);

// Where a site is, with the file's full name when a stack of the trace has it.
CodeSpot place_of(const Trace& trace, const SiteName& site);

// "src/queue.cc:57 in Queue::pop"
std::string location_of(const Frame& frame);

// The lines of the project's own that led to a site, nearest first.
std::vector<const Frame*> callers_of(const Trace& trace, const TracedStack& stack,
                                     const SiteName& site);

// "queue.cc:57", else the function.
std::string short_place(const CodeSpot& place);

// Where the failing thread left the test's own code, when that has no debug information and its
// calls were not traced: the function's name. Empty: it was seen.
std::string unseen_failing_function(const Trace& trace);

// Whether the place has a line or at least a function, and not just an address in an image.
bool has_name(const Trace& trace, const CodeSpot& place);

// The failure of a trace that names its outcome; nullptr: none was captured.
const TracedFailure* main_failure(const Trace& trace);

// The sleeps and timed waits behind which the second point stands, when there are any.
std::optional<CoveringWait> covering_wait(const EventOrder& order, const PointPair& pair);

}  // namespace unflake
