#include "explain/causes.h"

#include <algorithm>
#include <functional>

namespace unflake {
namespace {

struct Rule {
  CauseKind kind;
  const char* name;
  const char* advice;
  CauseEvidence (*look)(const Clues& clues);
};

constexpr Rule rules[] = {
    {CauseKind::async_wait, "async wait",
     "Wait for the condition itself instead of for a fixed time: a join, a future, a condition "
     "variable with its predicate, or polling until it holds. A longer time only makes the failure "
     "rarer.",
     async_wait},
    {CauseKind::ordering, "ordering",
     "Make the order explicit: let the barrier point wait until the critical one is over (join, "
     "future, latch, condition variable), or keep both under one lock and check there.",
     ordering},
    {CauseKind::lost_wakeup, "lost wake-up",
     "Keep what happened in a variable under the mutex and wait with a predicate: a signal that "
     "nobody waits for is forgotten.",
     lost_wakeup},
    {CauseKind::exact_timing, "exact timing",
     "Do not compare real time exactly: allow a tolerance, check only a lower bound, or give the "
     "code a clock that the test controls.",
     exact_timing},
    {CauseKind::teardown_race, "teardown race",
     "End the work before what it uses goes away: stop and join threads, and cancel callbacks, "
     "before the destructor or the end of main.",
     teardown_race},
    {CauseKind::deadlock, "deadlock",
     "Take the locks in one order everywhere (std::scoped_lock takes several at once), and wait "
     "for nobody while holding one.",
     deadlock},
    {CauseKind::starvation, "starvation",
     "Do not rely on getting the processor or a lock in time: block instead of spinning, hold "
     "locks shortly, and let time-outs be generous where they only guard against hanging.",
     starvation},
    {CauseKind::process_handover, "process hand-over",
     "Let the other side say that it is ready (a line on a pipe, a connection that is retried, a "
     "file renamed into place) before it is used.",
     process_handover},
    {CauseKind::resource, "resource",
     "Use it only when it is there: listen before anybody may connect, close before anybody opens "
     "again, and ask the system for a free one (port 0, a unique temporary folder) instead of a "
     "fixed one.",
     resource},
    {CauseKind::unknown, "unknown",
     "Look at the two timelines: what comes between the delay and the failure is where to search.",
     nullptr},
};

const Rule& rule_of(CauseKind kind) {
  return *std::ranges::find(rules, kind, &Rule::kind);
}

}  // namespace

std::string_view to_string(CauseKind kind) {
  return rule_of(kind).name;
}

std::string_view advice_for(CauseKind kind) {
  return rule_of(kind).advice;
}

bool Clues::failed_like(OutcomeKind kind) const {
  return (failing ? failing->outcome.kind : repro->outcome) == kind;
}

bool Clues::crashed() const {
  return failed_like(OutcomeKind::crash) || is_sanitizer(repro->failure.kind);
}

std::vector<Cause> causes_of(const Clues& clues) {
  std::vector<Cause> causes;
  for (const Rule& rule : rules) {
    if (!rule.look) continue;
    CauseEvidence found = rule.look(clues);
    if (found.score > 0) causes.push_back({rule.kind, found.score, std::move(found.texts)});
  }
  std::ranges::stable_sort(causes, std::greater(), &Cause::score);
  if (causes.empty())
    causes.push_back({CauseKind::unknown, 0, {"no rule found evidence for a known root cause"}});
  return causes;
}

}  // namespace unflake
