#pragma once

#include "trace/event_order.h"
#include "trace/explanation.h"

namespace unflake {

// All that the rules may look at.
struct Clues {
  const Repro* repro = nullptr;
  const ObservedRun* passing = nullptr;  // may be missing, as may the other
  const ObservedRun* failing = nullptr;
  const EventOrder* order = nullptr;  // when both are there
  std::optional<PointPair> pair;
  const Explanation* found = nullptr;  // what is known besides the causes

  const Point* first() const { return pair ? &order->points[pair->first] : nullptr; }
  const Point* second() const { return pair ? &order->points[pair->second] : nullptr; }
  bool failed_like(OutcomeKind kind) const;
  bool crashed() const;
};

// Every root cause for which there is evidence, the best one first; `unknown` when there is none.
std::vector<Cause> causes_of(const Clues& clues);

}  // namespace unflake
