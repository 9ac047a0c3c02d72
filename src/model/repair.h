#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/balance_report.h"
#include "model/repro.h"
#include "model/site.h"
#include "model/test.h"
#include "stats/distribution.h"
#include "stats/rates.h"
#include "util/time.h"

namespace unflake {

// The same runs with a patch and without.
struct ProofRuns {
  enum class Kind {
    under_plan,    // that made it fail
    later,         // the same plan with other delays: with the patch alone
    plain,         // nobody interferes
    schedules,     // under control, sampled
    busy,          // as many busy neighbours as there are cores
    one_core,      // all threads share one
    search,        // for another plan under which it fails
    whole_binary,  // all tests of the program, one after the other
  };
  Kind kind = Kind::plain;
  Count before, after;  // failures as recorded, of runs
  int other_failures_before = 0, other_failures_after = 0;
  std::string why_not;  // made; empty: they were
  std::string note;     // what was done, and what else was seen
};

std::string_view to_string(ProofRuns::Kind kind);

// Whether a patch repairs what a repro shows.
struct Proof {
  enum class Verdict {
    repaired,      // the failure that came without it does not come with it, nor another one
    not_repaired,  // it still comes, or the check that showed it is not made any more
    worse,         // something else fails, hangs or became much slower
    not_shown,     // it did not come without the patch either, or no run can tell: nothing is said
    not_built,
  };
  Verdict verdict = Verdict::not_shown;
  std::vector<ProofRuns> runs;
  int runs_with_patch = 0;           // of all kinds
  double rate_below = 1;             // of failures in these, at 95 % confidence
  std::optional<Interval> overhead;  // run time with the patch / without, plain runs, 95 %
  double overhead_median = 1;
  Duration median_before{}, median_after{};  // of plain runs that passed
  Duration latest{};                         // that a thread was made with the patch, at most
  std::vector<std::string> not_covered;      // what these runs cannot say
  std::string why;                           // of a verdict other than `repaired`
  bool interrupted = false;

  const ProofRuns* find(ProofRuns::Kind kind) const;
};

std::string_view to_string(Proof::Verdict verdict);

// A proof, and what was compared.
struct ProofReport {
  TestId test;
  std::string repro;     // its file
  std::string headline;  // of the failure
  std::string signature;
  std::string change;        // the patch's file, or "A..B"
  std::string build_system;  // "CMake"
  Duration built_before{}, built_after{};
  std::vector<std::string> notes;  // what moved, what was not committed; one sentence each
  std::string kept;                // folder with both builds; empty: it was removed
  Proof proof;
};

// What a repair is, from the order that a search has shown to be enough to the patch that was
// proven: what search, patch, reports and commands hand to each other.

// A place of a repair, as plans name it and as an editor does.
struct RepairPlace {
  SiteName site;
  CodeSpot spot;
  std::string thread;  // that reaches it; empty: any
};

// `barrier` waits until `critical` has been passed `count` times.
struct HandOver {
  RepairPlace critical;  // passed when the statement there is over
  RepairPlace barrier;   // waits before the statement there
  uint64_t count = 1;
  // In turn, in place of `count`: the n-th pass of the barrier waits for so many less of the
  // critical point.
  std::optional<uint64_t> ahead{};
  // What the critical thread comes to next, straight on: whatever lies between the two is over
  // there. Empty: the thread ends, branches, or it is not known.
  CodeSpot over_at{};
  bool across_processes = false;
};

// What runs with hand-overs enforced have shown: the order was kept in the running binary, and no
// source was touched.
struct EnforcedRuns {
  Count under_plan;  // failures, of runs under what makes the test fail
  Count late_after;  // the same, with the thread late as soon as the critical point is passed
  Count plain;       // and when nobody is late
  Count schedules;   // that were sampled
  std::string why_no_schedules;  // empty: they were made
  uint64_t waits = 0;            // runs, of those without a schedule, in which somebody waited
  Duration longest_wait{};
  Spread time_with, time_without{};  // of plain runs, in ms
};

// Hand-overs under which the failure did not come again; several when several threads came late.
struct EnforcedRepair {
  std::vector<HandOver> hand_overs;
  Plan plan;  // watches and holds
  EnforcedRuns runs;
  bool is_in_project = true;
};

// What was tried and is no repair.
struct DroppedRepair {
  std::vector<HandOver> hand_overs;
  std::string why;
};

// A sleep or a timed wait that was all that kept the two in order.
struct GuessedWait {
  RepairPlace place;
  Duration asked{};
  bool is_sleep = false;
};

// A test of how long something takes: no order repairs it, a larger bound does.
struct ExactTiming {
  std::vector<std::string> evidence;
  Duration passes{}, fails{};  // how late the test may be, and how late it may not
  int measured = 0;            // runs without any delay, and how long they took to the check
  Duration median{}, longest{}, at_tolerance{};
  std::optional<RepairPlace> constant;  // the call that gets the time; none was seen
  Duration asked{};                     // there
  std::optional<Duration> proposed;     // instead
};

// A repair as a file keeps it: `unflake run --enforce` takes it.
struct Fix {
  // The failure that it prevents. Its plan has the holds, and the test passes under it.
  Repro repro;
  std::vector<HandOver> hand_overs;
  EnforcedRuns runs;
};

// How a patch makes one thread wait for another, the one that a maintainer likes best first.
enum class RepairIdiom {
  join,        // of a thread, future, latch or process that is there already
  notify,      // a wait on the condition variable or event that the code has
  poll,        // a bounded wait until what the assertion reads is true
  hand_over,   // UNFLAKE_REACHED and UNFLAKE_AWAIT of unflake_sync.h
  definition,  // of objects in another order, so that they go away in the opposite one
  bound,       // another constant, for a test of how long something takes
  reset,       // of state that another test leaves behind
  delay,       // before the reading side: a stop-gap
};

std::string_view to_string(RepairIdiom idiom);

// Source that would be changed, and was not proven yet.
struct RepairPatch {
  RepairIdiom idiom = RepairIdiom::hand_over;
  std::string what;  // one sentence: what waits for what, and how
  std::string diff;  // `git apply` takes it
  std::vector<std::string> cautions;
  bool is_in_project = true;
};

// A patch, and what became of it.
struct TriedPatch {
  RepairPatch patch;
  std::string file;  // empty: it was not written
  std::optional<ProofReport> proof;
  std::string why_not;  // proven; empty: it was tried, or another one was proven before

  bool is_proven() const { return proof && proof->proof.verdict == Proof::Verdict::repaired; }
};

// A patch as its file keeps it and reports show it.
struct ProposedPatch {
  std::string file;                      // for `git apply`
  std::string what;                      // one sentence
  std::string proof;                     // what was run, and what that says; empty: not known
  std::vector<std::string> not_covered;  // by the proof
  std::string diff;
};

// All that a search for a repair has found in the running binary.
struct RepairReport {
  TestId test;
  std::string signature;
  Failure failure;
  std::string method;  // "short cut" or "flakesync"
  std::string failing_plan;
  std::vector<EnforcedRepair> repairs;  // best first
  std::vector<DroppedRepair> dropped;
  std::optional<GuessedWait> wait;
  std::optional<GuessedWait> ran_out;  // a time-out of the failing thread, only when it fails
  std::optional<ExactTiming> exact_timing;
  std::string deadlock;  // a cycle of locks, in words: a defect of the product
  std::string stop_gap;  // a delay under which it passes, as a last resort
  std::vector<TriedPatch> patches;
  std::vector<std::string> notes;
  int runs = 0;
  Duration elapsed{};
  bool interrupted = false, out_of_budget = false;
  bool under_control = false;  // the order was found there

  bool has_proven_patch() const { return std::ranges::any_of(patches, &TriedPatch::is_proven); }
};

}  // namespace unflake
