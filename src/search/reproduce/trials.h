#pragma once

#include <string>

#include "search/reproduce/hunt.h"

namespace unflake {

// Whether it makes a thread late, or tells it another time.
bool is_delay(const Intervention& intervention);
bool is_for(const Intervention& intervention, const Place& place);

bool has_started(const ExperimentResult& result);
// Whether one of the plan's delays happened; true when it has none.
bool has_fired(const Plan& plan, const ExperimentResult& result);

// The site and the thread.
std::string site_text(const Intervention& intervention);
// Different for different trials.
std::string text_of(const Trial& trial);
std::string headline_of(const Outcome& outcome);

}  // namespace unflake
