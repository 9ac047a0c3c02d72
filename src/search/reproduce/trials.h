#pragma once

#include <string>
#include <string_view>

#include "search/reproduce/hunt.h"

namespace unflake {

// Whether it makes a thread late, or tells it another time.
bool acts(const Intervention& intervention);
bool is_for(const Intervention& intervention, const Place& place);

bool has_started(const ExperimentResult& result);
// Whether one of the plan's delays happened; true when it has none.
bool has_fired(const Plan& plan, const ExperimentResult& result);

// Whether it ran out of time while most of that was delays.
bool was_cut_short(const ExperimentResult& result);

// What all delays of a thread come to that have begun when the test failed, of the thread that was
// delayed most. The run must have recorded its calls.
Duration lateness_in(const ExperimentResult& result);

// Whether a stack that was captured when it failed has this file and line.
bool failed_at(const ExperimentResult& result, const Failure& wanted);
// Whether a text has them, as in "queue.cc:57", "queue.cc(57)" or "queue.cc on line 57".
bool names_line(std::string_view text, const Failure& wanted);

// The site and the thread.
std::string site_text(const Intervention& intervention);
// Different for different trials.
std::string text_of(const Trial& trial);
std::string headline_of(const Outcome& outcome);

}  // namespace unflake
