#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/trace.h"
#include "stats/rates.h"

namespace unflake {

// A run whose calls were recorded, and whether it showed what is looked for.
struct SeenRun {
  const Trace* trace = nullptr;
  bool failed = false;
};

// When a thread, or any of a class, comes to a call for the nth time, or leaves it.
struct OrderedMoment {
  std::string thread;  // its name, or that of its class: `pool.cc:31#*`
  size_t process = 0;  // which of the threads of this name: of several processes each has a `main`
  SiteName site;
  uint64_t nth = 1;
  bool is_end = false;

  auto operator<=>(const OrderedMoment&) const = default;
};

// "pool.cc:31#2 comes to queue.cc:57:read", "... leaves ...", "... for the third time"
std::string to_string(const OrderedMoment& moment);

// An order that holds more often in failing runs than in passing ones.
struct OrderDifference {
  OrderedMoment first, then;
  Count in_failing, in_passing;
  double p = 1;         // that it holds as often in both, by Fisher's exact test
  double p_of_all = 1;  // the same, corrected for the number of orders that were compared
  bool with_failing_thread = false;
  Duration to_failure{};  // from the later of the two, on average
};

// Those that chance would give less than once in twenty times, by how well they separate; among
// equals those of the failing thread, and the nearest to the failure. Orders about the same two
// places are there once.
std::vector<OrderDifference> find_order_differences(const std::vector<SeenRun>& runs);

// Where who must not come first waits: what decides may be the call itself, or what its thread does
// on the way there.
enum class HoldAt { call, step_before };

// A plan that keeps the order: a watch and a hold. Names and programs are those of the traces; none
// when no run has shown the threads, or there is no step before.
std::vector<Intervention> as_interventions(const OrderDifference& order,
                                           const std::vector<SeenRun>& runs, HoldAt where);

}  // namespace unflake
