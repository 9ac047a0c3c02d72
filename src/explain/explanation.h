#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cause_facts.h"
#include "model/repro.h"
#include "model/trace.h"

namespace unflake {

// A run that was looked at: its trace, and what the process's end adds to it.
struct ObservedRun {
  Trace trace;
  Outcome outcome;
  std::vector<ThreadAtEnd> thread_stacks;  // when it ran out of time
  // Who used and who freed what was no longer there, as far as the run's output tells.
  std::vector<std::string> memory{};
};

// What one thread does at one moment.
struct Moment {
  enum class What { call, return_from_call, thread_end, failure };
  What what = What::call;
  std::string thread;
  std::string started_by;  // "main at pool.cc:31"; empty for a process's first thread
  std::string role{};      // "the thread that runs `carry`"; empty: a process's first, or unknown
  CodeSpot place;
  std::optional<CodeSpot> caller;  // the failing function's line, or else the next one above
  std::string api;
  std::optional<Duration> passing, failing;  // since the run's start; nothing: it did not happen
  bool passing_is_bound = false;             // the passing run was there at that time or later
};

// Two moments that came in this order when the test passed and in the other when it failed: `first`
// is the critical point, `second` the barrier point, which must wait for it.
struct FlippedPair {
  Moment first, second;
  bool same_object = false;  // both are about the same mutex, descriptor ...
  // Whether experiments have shown that it decides: passes with the first one first, failures with
  // the second one first.
  bool is_shown = false;
  Count kept{}, reversed{};
  // One thread comes to both, the second one first, and nobody else may come in between.
  bool is_gap = false;
};

// Where a thread was made late.
struct Lateness {
  std::string thread;
  std::string started_by;
  CodeSpot place;
  std::optional<CodeSpot> caller{};  // who came there through wrappers
  std::string site;                  // as the plan names it
  std::string position;              // "before", "after", "at the start of the thread, before"
  Duration longest{};                // that one delay took in the run with the plan
  uint64_t times = 0;
  std::string waits_for{};  // of a hold: the site that another thread has to pass first
  std::string role{};       // as of a moment
};

// A sleep or timed wait that is all that keeps the barrier point after the critical one.
struct CoveringWait {
  Moment moment;
  SiteName site{};           // as a plan names it
  std::string executable{};  // of the thread's process
  bool is_sleep = false;
  int times = 1;                    // waits of the failing run at this site
  std::optional<Duration> asked;    // by one of them
  std::optional<Duration> passing;  // really spent, all together
  Duration failing{};
  bool ran_out_passing = false, ran_out_failing = false;
  std::optional<Duration> needed;  // from its start to the critical point, in the passing run
};

enum class RootCauseKind {
  async_wait,
  ordering,
  lost_wakeup,
  exact_timing,
  teardown_race,
  deadlock,
  starvation,
  process_handover,
  resource,
  unknown
};

std::string_view to_string(RootCauseKind kind);  // "async wait"
// What kind of repair usually helps, in one or two sentences.
std::string_view advice_for(RootCauseKind kind);

struct RootCause {
  RootCauseKind kind = RootCauseKind::unknown;
  double score = 0;  // 0 to 1: a ranking, not a probability
  std::vector<std::string> evidence;
};

// Why a test is flaky, as far as a passing and a failing run show.
struct Explanation {
  std::vector<Lateness> late;
  std::optional<Moment> failure;
  std::optional<FlippedPair> pair;
  std::optional<CoveringWait> wait;
  std::optional<MissedWakeUp> wake_up;
  CauseFacts facts;
  std::vector<RootCause> causes;         // the best one first; never empty
  std::vector<std::string> notes;        // what the reader must know before believing the rest
  std::vector<std::string> experiments;  // what was tried and what came of it
  std::vector<std::string> ending;       // of the failing run: who waits for whom, who freed what
  std::string unseen;                    // why nothing can be said about the cause; empty: it can
};

// What experiments have shown, beyond what two runs look like. A critical point is one even where
// nobody was found whose waiting for it helps.
struct ShownPair {
  size_t critical = 0;            // a call of the passing run
  std::optional<size_t> barrier;  // a call of the failing run
  Count kept, reversed;  // passes with the critical point first; failures with the other one first
  // A call of the passing run before which the late thread may be late, but not between the two.
  std::optional<size_t> gap_from{};

  bool is_refuted() const { return barrier && reversed.runs > 0 && reversed.hits == 0; }
  bool decides() const { return barrier && kept.hits > 0 && reversed.hits > 0; }
};

struct ExplainOptions {
  std::optional<ShownPair> shown;
  std::vector<std::string> experiments;  // what was tried and what came of it
  std::vector<std::string> wrappers;     // functions that only lead to a timing API, by name
  // Where the failing thread came before it failed, and never when the test passes.
  std::optional<CodeSpot> other_way{};
  // Experiments have chosen where the plan is late: that it is a line says nothing.
  bool is_place_chosen = false;
  CauseFacts facts{};
};

// What experiments could be asked about it.
SuspectedCauses suspected_causes(const Explanation& found);

// Either run may be missing. Under a plan that makes the test pass it is the passing run that was
// made under it.
Explanation explain(const Repro& repro, const ObservedRun* passing, const ObservedRun* failing,
                    const ExplainOptions& options = {});

}  // namespace unflake
