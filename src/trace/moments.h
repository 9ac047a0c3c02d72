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

// "queue.cc:57", else the function.
std::string short_place(const CodeSpot& place);

// The failure of a trace that names its outcome; nullptr: none was captured.
const TracedFailure* main_failure(const Trace& trace);

// The sleeps and timed waits behind which the second point stands, when there are any.
std::optional<CoveringWait> covering_wait(const EventOrder& order, const PointPair& pair);

}  // namespace unflake
