#pragma once

#include <string>
#include <vector>

#include "model/explore_report.h"
#include "model/plan.h"

// What a controlled run has shown, for runs that nobody controls.
namespace unflake {

// Orders of a controlled run for one that nobody controls: for each, a watch of what comes first
// and a hold of what comes then. None when the trace does not know one of the threads.
//
// Under control a call may be several points, before and after it; visits are translated to those
// of the call, exactly where all its calls by that thread had equally many points.
std::vector<Intervention> as_interventions(const std::vector<OrderConstraint>& orders,
                                           const Trace& trace);

// A visit at which a schedule has passed a thread over while time passed: as late it has to be in a
// free run.
struct LateVisit {
  Intervention delay;
  std::string why;
};

// Of all threads, the latest first. One that never began has its name from a run without exchanges.
std::vector<LateVisit> late_visits(const Trace& trace, const Trace& undisturbed);

}  // namespace unflake
