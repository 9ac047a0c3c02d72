#pragma once

#include <string>
#include <vector>

#include "explain/call_order.h"
#include "explain/explanation.h"
#include "model/trace.h"

namespace unflake {

// Everything that the rules may look at.
struct Clues {
  const Repro* repro = nullptr;
  const ObservedRun* passing = nullptr;  // may be missing, as may the other
  const ObservedRun* failing = nullptr;
  const CallOrder* order = nullptr;  // when both are there
  std::optional<PointPair> pair;
  const Explanation* found = nullptr;   // what is known besides the causes
  std::optional<CodeSpot> other_way{};  // of the failing thread, before it failed
  bool is_place_chosen = false;         // where the plan is late
  std::optional<ShownPair> shown{};     // by experiment

  const Point* first() const { return pair ? &order->points[pair->first] : nullptr; }
  const Point* second() const { return pair ? &order->points[pair->second] : nullptr; }
  bool failed_like(OutcomeKind kind) const;
  bool crashed() const;
};

// What sentences call whoever a moment, or lateness, is about.
template <class Actor>
const std::string& who_is(const Actor& actor) {
  return actor.role.empty() ? actor.thread : actor.role;
}

// What experiments have shown against a cause; empty: nothing.
std::string contradiction(RootCauseKind kind, const Explanation& found);

// The wait of the failing run that came after its only wake-up, if any.
std::optional<MissedWakeUp> missed_wake_up(const CallOrder& order);

// Every root cause for which there is evidence, the best one first; `unknown` when there is none.
std::vector<RootCause> root_causes_of(const Clues& clues);

// What a rule found; a score of 0 means that it does not apply.
struct RootCauseEvidence {
  double score = 0;
  std::vector<std::string> texts;
};

// Whether any other thread made calls up to the failure.
bool others_are_active(const CallOrder& order, const Point& failure);

// One rule for each root cause; causes.cc has the list of them.
RootCauseEvidence async_wait(const Clues& clues);
RootCauseEvidence ordering(const Clues& clues);
RootCauseEvidence lost_wakeup(const Clues& clues);
RootCauseEvidence process_handover(const Clues& clues);

RootCauseEvidence exact_timing(const Clues& clues);
RootCauseEvidence starvation(const Clues& clues);
RootCauseEvidence resource(const Clues& clues);

RootCauseEvidence teardown_race(const Clues& clues);
RootCauseEvidence deadlock(const Clues& clues);

// Who waited for whose lock when a run ended.
struct StuckLocks {
  struct Wait {
    uint32_t thread = no_index;
    uint32_t site = no_index;
    uint32_t holder = no_index;  // no_index: not known
  };
  std::vector<Wait> waits;
  std::vector<size_t> cycle;  // waits, each for the lock of the next one's thread
};

StuckLocks stuck_locks(const Trace& trace);

}  // namespace unflake
