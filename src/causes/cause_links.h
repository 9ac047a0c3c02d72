#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "store/values.h"

namespace unflake {

// A cause and those of the given failures that belong to it.
struct LinkedCause {
  CauseRecord record;
  std::vector<size_t> failures;  // by their place in the given list, ascending
  bool changed = false;          // the record differs from the one that was known
  bool came_back = false;        // it was closed, and failed again afterwards
};

// How a cause identifies a failure: its signature; for one that says nothing but that a test
// failed, one that is the test's own.
std::string cause_signature(const FlakyFailure& failure);

// Whether a failure after a cause was closed is a return, and not from code without the fix.
using IsReturn = std::function<bool(const CauseRecord& closed, const FlakyFailure& failure)>;

// Which failures have one cause. A known cause keeps its id, its title, its issue and its
// signatures; failures join it or start a new one, the oldest first, so that the answer does not
// depend on their order. One that was closed and failed afterwards is open again.
std::vector<LinkedCause> link_causes(std::span<const FlakyFailure> failures,
                                     std::span<const CauseRecord> known, TimePoint now,
                                     const IsReturn& is_return = {});

}  // namespace unflake
