#pragma once

#include <string>
#include <vector>

#include "model/trace.h"

namespace unflake {

// Whether the frame is the line that the site names.
bool is_at(const Frame& frame, const SiteName& site);

// Whether it is a line of the project's own.
bool is_own(const Trace& trace, const TracedFrame& frame, const Frame& source);

// "main at pool.cc:31"; empty for a process's first thread.
std::string started_by(const Trace& trace, uint32_t thread);

// A thread's name, or "a thread" when it is not known.
std::string name_of_thread(const Trace& trace, uint32_t thread);

// "src/queue.cc:57 in Queue::pop"
std::string location_of(const Frame& frame);

// The lines of the project's own that led to a site, nearest first.
std::vector<const Frame*> callers_of(const Trace& trace, const TracedStack& stack,
                                     const SiteName& site);

// The failure of a trace that names its outcome; nullptr: none was captured.
const TracedFailure* main_failure(const Trace& trace);

// The frame of the stack at the site's line, or null.
const Frame* frame_at(const TracedStack& stack, const SiteName& site);

// Where a site is, with the file's full name when a stack of the trace has it.
CodeSpot place_of(const Trace& trace, const SiteName& site);

}  // namespace unflake
