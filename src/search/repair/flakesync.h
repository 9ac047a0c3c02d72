#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "search/repair/repair.h"
#include "search/reproduce/hunt.h"

// FlakeSync's search for a critical and a barrier point, as published, each step by itself.
namespace unflake {

struct DelayLadder {
  Duration first{std::chrono::milliseconds(100)};
  Duration most{std::chrono::milliseconds(51'200)};
};

// Places by number, and how late each of them is.
struct LatePlaces {
  std::vector<size_t> places;
  Duration delay{};
};
using FailsWhenLate = std::function<bool(const std::vector<size_t>& places, Duration delay)>;

// All of n places late, doubling the delay until the test fails. Nothing: it never does.
std::optional<LatePlaces> first_failing_delay(size_t n, const DelayLadder& ladder,
                                              const FailsWhenLate& fails);

// Delta debugging that, before it splits finer, doubles the delay: fewer places are late for less
// time in all, and it may be the sum that counts.
LatePlaces minimise_delays(LatePlaces late, const DelayLadder& ladder, const FailsWhenLate& fails);

// The last of a region of numbers that fail, going up from 0: up to the first that passes after
// one that fails. Nothing: none fails.
std::optional<size_t> last_of_failing_region(size_t n, const std::function<bool(size_t)>& fails);

// A line from which a function was called, and the function that it is in.
struct CallSite {
  SiteName line;
  std::string function;
};

// The project's own lines on a stack, innermost first.
std::vector<CallSite> call_sites_of(const Trace& trace, const TracedStack& stack);

// The outermost call site at which being late makes the test fail, with the delay that it takes:
// going up, the delay is doubled where it is not enough, and stays so.
struct RootSite {
  CallSite site;
  Duration delay{};
};
std::optional<RootSite> find_root(const std::vector<CallSite>& sites, Duration delay,
                                  const DelayLadder& ladder,
                                  const std::function<bool(const CallSite&, Duration)>& fails);

// The lines at which a thread could wait, in the order in which they are tried: for each call site
// of the failure's stack, from there up to the begin of its function.
std::vector<CallSite> barrier_lines(const std::vector<CallSite>& stack,
                                    const std::function<std::vector<int>(const CallSite&)>& lines);

// The whole search. The hunt must have been prepared; it knows how to find functions that run side
// by side. What is found is verified like any other repair.
RepairReport find_repair_as_published(Hunt& hunt, RepairRuns& runs, const RepairOptions& options,
                                      const std::function<void(const EnforcedRepair&)>& found = {});

}  // namespace unflake
