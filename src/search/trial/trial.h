#pragma once

#include <string>
#include <string_view>

#include "model/events.h"
#include "model/plan.h"

namespace unflake {

// One experiment that somebody wants to make, and why.
struct Trial {
  Plan plan;
  Conditions conditions;
  std::string why;
};

struct Observation {
  ExperimentResult result;
  bool hit = false;    // it showed what the search is after
  bool fired = false;  // an intervention has happened; true when the trial has none
  Duration limit{};    // that the run had
};

// Whether it makes a thread late, or tells it another time.
bool acts(const Intervention& intervention);

bool has_started(const ExperimentResult& result);
// Whether one of the plan's delays happened; true when it has none.
bool has_fired(const Plan& plan, const ExperimentResult& result);

// Whether it ran out of time while most of that was delays.
bool ran_into_delays(const ExperimentResult& result);

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
