#pragma once

#include "search/repair/points.h"
#include "stats/plausibility.h"

namespace unflake {

// What is asked before a test is called one of how long something takes.
struct TimingQuestion {
  const Trace& passing;
  const Trace& failing;
  const RepairLines& lines;
  Duration late{};             // that makes it fail
  std::optional<Slack> slack;  // if it was measured
  MachineLateness machine{};   // that was seen; none: what others are known for
  // Where the plan makes the failing thread itself late: so many of its steps come before it.
  std::optional<size_t> behind{};
  // Before the bound is measured: whether an order helps when the failing thread itself is late
  // there. Then it is not its time that matters, but who comes first.
  std::function<bool(const Intervention& itself)> is_order{};
};

// Whether the outcome follows a duration, by experiment. The thread that fails is made late itself,
// with nobody else late: a test that waits for somebody passes then, more surely than before, and
// one that bounds a time fails, up to its last look at a clock, or to the end of a wait that ran
// out. Measures how long the time that it bounds really is, and proposes a bound.
std::optional<ExactTiming> recognise_exact_timing(RepairRuns& runs, const TimingQuestion& question);

// A time-out that runs out in the failing run alone, of the thread that fails; the last such.
std::optional<GuessedWait> wait_that_ran_out(const Trace& passing, const Trace& failing,
                                             const RepairLines& lines);

// Where a thread reads a clock, or waits for a time that runs out in the failing run only; in the
// order in which it comes there.
std::vector<ThreadStep> timing_steps(const Trace& passing, const Trace& failing,
                                     const std::string& thread, const RepairLines& lines);

}  // namespace unflake
