#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/explanation.h"
#include "model/trace.h"
#include "trace/names.h"
#include "trace/roles.h"

namespace unflake {

// A moment of a thread that both runs may have: the start or the end of a call, the thread's end,
// or the failure. Calls are the same when thread, site and number of the visit are.
struct Point {
  enum class Kind { begin, end, thread_end, failure };
  Kind kind = Kind::begin;
  uint32_t thread = no_index;           // in CallOrder::threads
  const TracedCall* passing = nullptr;  // the call; nullptr: not made
  const TracedCall* failing = nullptr;
  // When a passing run was where the other one failed is known only within bounds.
  std::optional<Duration> passing_from, passing_to;
  std::optional<Duration> failing_at;
};

struct OrderedThread {
  std::string name;
  uint32_t passing = no_index;  // in the traces
  uint32_t failing = no_index;
  // When the plan's first delay began and its last one ended, in the run under it.
  std::optional<Duration> late_from, late_to;
};

// Two runs of one test, point by point.
struct CallOrder {
  const Trace* passing = nullptr;
  const Trace* failing = nullptr;
  bool plan_is_passing = false;  // the passing run is the one with interventions
  Wrappers wrappers;             // functions that are not where anything happens
  std::vector<OrderedThread> threads;
  std::vector<Point> points;  // by thread, each thread's in its own order
  std::optional<size_t> failure;
  // Until when the failing thread did as it does when the test passes, as far as its calls show.
  std::optional<Duration> divergence;

  // The thread that failed, and the latest time by which the decisive thing had happened.
  std::optional<uint32_t> failing_thread() const;
  Duration decided_by() const;

  const Trace& with_plan() const { return plan_is_passing ? *passing : *failing; }
  const TracedSite* site_of(const Point& point) const;
  std::string who(const Point& point) const;           // its thread, as sentences call it
  uint16_t traits_of(const Point& point) const;        // of its API: protocol::ApiTraits
  uint16_t group_traits_of(const Point& point) const;  // protocol::GroupTraits
};

CallOrder order_calls(const Trace& passing, const Trace& failing, bool plan_is_passing,
                      const std::vector<std::string>& wrappers = {});

// The pair of points that most likely decides: `first` came before `second` in the passing run and
// not in the failing one, and one of the two comes after a delay of the plan.
struct PointPair {
  size_t first = 0, second = 0;
  bool same_object = false;
};

std::optional<PointPair> flipped_pair(const CallOrder& order);
// The same where experiments have shown what comes too late.
std::optional<PointPair> flipped_pair(const CallOrder& order, size_t first);

// Of the point's thread, in the failing run if it is there.
uint32_t process_of(const CallOrder& order, const Point& point);
bool are_about_one_object(const CallOrder& order, size_t one, size_t other);

// When, in the failing run, a thread first did something other than in the passing one: a call
// that it does not make there, one less, or one that ended differently. What decides came before.
std::optional<Duration> divergence(const Trace& passing, uint32_t passing_thread,
                                   const Trace& failing, uint32_t failing_thread);

// The same only for calls that the system refused in the failing run and not in the other.
std::optional<Duration> first_error(const Trace& passing, uint32_t passing_thread,
                                    const Trace& failing, uint32_t failing_thread);

// The points of an order in the words of an explanation.
Moment moment_of(const CallOrder& order, const Point& point);

// Where the function that fails is on the way to the point: what the test itself does there.
std::optional<CodeSpot> line_in_failing_function(const CallOrder& order, const Point& point);

// "queue.cc:57", else the function.
std::string short_place(const CodeSpot& place);

// Where the failing thread left the test's own code, when that has no debug information and its
// calls were not traced: the function's name. Empty: it was seen.
std::string unseen_failing_function(const Trace& trace);

// Whether lines of this file were seen on any stack: it was compiled with debug information.
bool has_lines_of(const Trace& trace, const std::string& file);

// Whether the place has a line or at least a function, and not just an address in an image.
bool has_name(const Trace& trace, const CodeSpot& place);

// The sleeps and timed waits after which the second point comes, if any.
std::optional<CoveringWait> covering_wait(const CallOrder& order, const PointPair& pair);

}  // namespace unflake
