#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/lifecycle_event.h"

namespace unflake {

// One time that a failure of a test was known to be flaky: from its first failure, its report or
// its quarantine on, until somebody claimed that it was gone by closing or lifting these.
struct FlakyEpisode {
  TestId test;
  std::string signature;
  TimePoint opened;
  std::optional<TimePoint> closed;
  std::string commit, url;  // of the fix and of the report, where they are known
  bool came_back = false;   // an earlier one of the same failure had been closed
  std::optional<TimePoint> last_failure;
};

// It was claimed to be over, and has not failed since.
bool is_settled(const FlakyEpisode& episode);

// Oldest first for each failure. An event without a signature is about all failures of its test.
std::vector<FlakyEpisode> episodes_of(const std::vector<FlakyFailure>& failures,
                                      std::vector<LifecycleEvent> events);

// A window before and one after a claim, as far as no other claim about the same failure is in
// them and all runs are `known`. The one before is as long as the one after, or 30 days when that
// is longer.
struct ClaimWindows {
  Window before, after;
};

ClaimWindows windows_of(const std::vector<FlakyEpisode>& episodes, size_t claim,
                        const Window& known);

}  // namespace unflake
