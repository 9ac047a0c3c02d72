#include "agent/record/actions.h"

#include <limits.h>
#include <linux/futex.h>
#include <time.h>

#include "agent/clock.h"
#include "agent/process.h"
#include "agent/raw.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"

namespace unflake::agent {
namespace {

using namespace protocol;

const Rule& rule(uint32_t number) {
  return memory().rules[number];
}
RuleState& state(uint32_t number) {
  return memory().rule_states[number];
}
RuleState& state(const Rule& of) {
  return state(static_cast<uint32_t>(&of - memory().rules.first));
}

bool is_for_this_thread(const Rule& rule) {
  if (rule.threads == Threads::named && rule.thread != this_thread.name) return false;
  if (rule.threads == Threads::in_class && rule.thread != this_thread.thread_class) return false;
  if (rule.executable == none) return true;
  const LoadedImage* executable = executable_image();
  return executable != nullptr && executable->plan_number == rule.executable;
}

bool anchor_was_reached(const Rule& rule) {
  return rule.anchor >= memory().rules.count || state(rule.anchor).matched.load() > 0;
}

bool is_due(const Rule& rule, uint64_t visit) {
  switch (rule.visits) {
    case Visits::only_nth:
      return visit == rule.nth;
    case Visits::from_nth:
      return visit >= rule.nth;
    default:
      return true;
  }
}

uint64_t delay_at(const Rule& rule, uint64_t thread_visit) {
  if (rule.visits != Visits::halving) return rule.duration_ns;
  return thread_visit < 64 ? rule.duration_ns >> thread_visit : 0;
}

// Several processes may hold on one rule, so the futex is a shared one.
void tell_match(RuleState& watched) {
  watched.fired.add(1);
  watched.matched.add(1);
  if (watched.waiters.load() > 0)
    raw_syscall(__NR_futex, as_word(watched.matched.raw()), FUTEX_WAKE, INT_MAX);
}

void wait_for_matches(const Rule& hold, RuleState& own) {
  RuleState& watched = state(hold.other);
  const uint64_t deadline = now_ns() + hold.duration_ns;
  watched.waiters.add(1);
  for (uint32_t seen = watched.matched.load(); seen < hold.count; seen = watched.matched.load()) {
    const uint64_t now = now_ns();
    if (now >= deadline) {
      own.let_go.add(1);
      break;
    }
    const timespec rest = to_timespec(static_cast<int64_t>(deadline - now));
    raw_syscall(__NR_futex, as_word(watched.matched.raw()), FUTEX_WAIT, seen, as_word(&rest));
  }
  watched.waiters.add(-1u);
}

void add(Due& due, const Rule& rule, const Moment& moment) {
  const uint64_t delay = rule.action == Action::delay ? delay_at(rule, moment.visit) : 0;
  if (delay > due.delay_ns) {
    due.delay_ns = delay;
    due.delay = &rule;
  }
  if (rule.action == Action::hold && rule.other < memory().rules.count) due.hold = &rule;
  if (rule.action == Action::replace_time && !moment.has_wrong_time) due.replace = &rule;
  if (rule.action == Action::scale_time && moment.has_time) due.scale = &rule;
}

void count_fired(const Due& due) {
  const Rule* const rules[] = {due.delay, due.hold, due.time_change()};
  for (const Rule* rule : rules)
    if (rule != nullptr) state(*rule).fired.add(1);
}

bool counts_here(const Rule& rule, const Moment& moment) {
  return rule.position == moment.position && is_for_this_thread(rule) && anchor_was_reached(rule);
}

template <class Use>
void for_each_due(const Moment& moment, bool watches, Use use) {
  const PlanSite& site = memory().plan_sites[moment.plan_site];
  for (uint32_t i = 0; i < site.rule_count; ++i) {
    const uint32_t number = site.first_rule + i;
    if (number >= memory().rules.count) return;
    const Rule& candidate = rule(number);
    if ((candidate.action == Action::watch) == watches && counts_here(candidate, moment) &&
        is_due(candidate, state(number).visits.add(1) + 1))
      use(candidate);
  }
}

void mark_late() {
  if (this_thread.was_late) return;
  this_thread.was_late = true;
  late_thread_began();
}

template <class Sleep>
void be_late(const Rule& because, Sleep sleep) {
  RuleState& own = state(because);
  const uint64_t began = now_ns();
  {
    Unguarded unguarded;
    sleep(began, own);
  }
  own.added_ns.add(now_ns() - began);
}

}  // namespace

// Watches come last: whom they release may end the process, and what is due here has begun.
Due due_at(const Moment& moment) {
  Due due;
  for_each_due(moment, false, [&](const Rule& rule) { add(due, rule, moment); });
  count_fired(due);
  for_each_due(moment, true, [](const Rule& rule) { tell_match(state(rule)); });
  return due;
}

void perform(const Due& due, uint32_t site) {
  if (!due.any()) return;
  mark_late();
  delay_began(due.delay_ns + (due.hold != nullptr ? due.hold->duration_ns : 0));
  Event* event = (plan().flags & record_events) != 0 ? next_event() : nullptr;
  if (event != nullptr)
    *event = {.enter_ns = now_ns(),
              .value = static_cast<int64_t>(due.delay_ns),
              .site = site,
              .stack = none,
              .api = delay_api,
              .flags = event_delayed | event_unfinished};
  if (due.hold != nullptr)
    be_late(*due.hold, [&](uint64_t, RuleState& own) { wait_for_matches(*due.hold, own); });
  if (due.delay != nullptr)
    be_late(*due.delay, [&](uint64_t began, RuleState&) { sleep_until(began + due.delay_ns); });
  delay_ended();
  if (event == nullptr) return;
  event->exit_ns = now_ns();
  event->flags = event_delayed;
}

}  // namespace unflake::agent
