#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/repair/repair_runs.h"

namespace unflake {

// What an experiment makes a thread late by, if its plan is satisfied with less.
inline constexpr Duration least_lateness = std::chrono::milliseconds(50);

// A thread that the plan makes late, as the runs with and without it show.
struct LateThread {
  std::string name;
  size_t namesake = 0;                // which of several, as in `namesake_number`
  std::vector<size_t> interventions;  // of the plan: what makes it late
  std::vector<size_t> behind;         // so many of its steps come before it is late, each time
  Duration by{};                      // in all, until the failure
};

// In the order in which they become late.
std::vector<LateThread> late_threads(const Plan& plan, const Trace& with_plan);

// Where the last thing happens that must not come late.
struct CriticalPoint {
  ThreadStep step;                 // the last one before which being late makes the test fail
  std::optional<ThreadStep> next;  // that shows when it is over; none: the end of the thread
  Intervention late;               // before `step`, which is enough to fail
  bool whole_class = false;        // any thread of its class
  bool when_reached = false;       // it is over as soon as it is reached: the thread waits there
  uint64_t count = 1;              // how often the step is passed until then, by any thread
};

// The boundary of the region in which being late makes the test fail, by halving: after the last
// step of the region the thread may be as late as it likes. `others` are what else makes it fail.
struct CriticalSearch {
  std::vector<ThreadStep> steps;  // of a passing run
  size_t from = 0;                // the first one that may be it
  Intervention late;              // as it was; its place and visit are exchanged
  std::vector<Intervention> others;
  bool whole_class = false;
};
std::optional<CriticalPoint> find_critical(RepairRuns& runs, const CriticalSearch& search);

// What a thread of a plan came to in a passing run, and how it is to be late there. Which thread of
// a pool comes to the place differs from run to run: `late.behind` is made to fit. No steps: no
// thread like it was seen.
CriticalSearch search_for(const Plan& plan, const Trace& passing, const RepairLines& lines,
                          LateThread& late);

// Of threads that a plan makes late: the last things that must not come late.
struct LatePoints {
  std::vector<CriticalPoint> criticals;
  std::vector<CriticalPoint> weaker;  // tried when these do not help
};
LatePoints find_late_points(RepairRuns& runs, const Trace& passing, const RepairLines& lines,
                            const std::vector<LateThread>& late);

// How often a step was passed by then, by any thread; at least once.
uint64_t passes_until(const Trace& trace, const ThreadStep& step);
// The same of a statement: a line that several functions share comes twice in one pass of it.
uint64_t passes_until(const Trace& trace, const ThreadStep& step, const RepairLines& lines);
// "queue.cc:57@main".
std::string short_name(const ThreadStep& step);

// Both are passed again and again, as often: each pass of the barrier waits for one of the other.
struct Turns {
  uint64_t ahead = 1;   // passes of the barrier that need not wait
  uint64_t rounds = 2;  // in a passing run
};

// One that has to wait, and what for.
struct HandOverPoints {
  CriticalPoint critical;
  ThreadStep barrier;
  std::optional<Turns> turns{};
};
HandOver hand_over_of(const HandOverPoints& points, const RepairLines* lines = nullptr);

// The plan, and after it what keeps the order: watches, then a hold with this bound.
Plan with_order(Plan plan, const std::vector<HandOverPoints>& order, Duration bound);

// The same delay before another step.
Intervention late_before(const Intervention& how, const ThreadStep& step);

// The same in turn, for a barrier that is passed more than once: what is passed as often as it, as
// soon as the critical step is over. Nothing: there is no such step.
std::optional<HandOverPoints> in_turn(const HandOverPoints& points, const Trace& passing,
                                      const RepairLines& lines);

// Where a thread could wait, the most promising first: from the failing line upwards through the
// function that failed, what a comparison of two runs named, its callers, then all else that others
// did before.
struct BarrierHints {
  std::vector<std::string> late;  // threads that nobody needs to hold: they are waited for
  std::vector<SiteName> named;    // by whoever compared a passing and a failing run
};
std::vector<ThreadStep> barrier_candidates(const Trace& failing, const RepairLines& lines,
                                           const BarrierHints& hints);

// The sleep or timed wait that was all that kept the two in order, if any.
std::optional<GuessedWait> guessed_wait(const Trace& failing, const ThreadStep& barrier,
                                        const RepairLines& lines);

}  // namespace unflake
