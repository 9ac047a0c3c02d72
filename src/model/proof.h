#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "stats/intervals.h"
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

}  // namespace unflake
