#include "agent/record/visit.h"

#include <limits.h>
#include <linux/futex.h>
#include <time.h>

#include "agent/process.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"
#include "agent/schedule/turns.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {
namespace {

using namespace protocol;

const Rule& rule(uint32_t number) {
  return memory().rules[number];
}
RuleState& state(uint32_t number) {
  return memory().rule_states[number];
}
uint32_t number_of(const Rule& of) {
  return static_cast<uint32_t>(&of - memory().rules.first);
}
RuleState& state(const Rule& of) {
  return state(number_of(of));
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

constexpr uint64_t held_look_ns = 2'000'000;

// Shows from outside that this thread waits because of the plan. One whose handler has left a hold
// with longjmp finds its old entry again.
HeldThread* show_held(uint32_t* word) {
  if (quiescence() == nullptr) return nullptr;
  const auto tid = static_cast<uint32_t>(raw_syscall(__NR_gettid));
  for (HeldThread& held : quiescence()->held) {
    if (held.tid.load() != tid && !held.tid.change(0, tid)) continue;
    held.released.store(0);
    held.began_ns.store(now_ns());
    held.word.store(static_cast<uint64_t>(as_word(word)));
    return &held;
  }
  return nullptr;
}

void hide_held(HeldThread* held) {
  if (held == nullptr) return;
  held->word.store(0);
  held->tid.store(0);
}

// The one thread that it is about has ended: names are not given twice.
bool can_come_no_more(const Rule& watched) {
  if (watched.threads != Threads::named || watched.thread == main_thread) return false;
  bool has_ended = false;
  const uint32_t used = memory().threads.used->load();
  for (uint32_t i = 0; i < used && i < memory().threads.count; ++i) {
    const Thread& thread = memory().threads[i];
    if (thread.name != watched.thread) continue;
    if (thread.state.load() != 3) return false;
    has_ended = true;
  }
  return has_ended;
}

bool is_impossible(const HeldThread* held, const Rule& watched) {
  return (held != nullptr && held->released.load() != 0) || can_come_no_more(watched);
}

uint64_t shorter(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

void wait_for_matches(const Rule& hold, RuleState& own) {
  RuleState& watched = state(hold.other);
  const uint64_t deadline = now_ns() + hold.duration_ns;
  watched.waiters.add(1);
  HeldThread* held = show_held(watched.matched.raw());
  for (uint32_t seen = watched.matched.load(); seen < hold.count; seen = watched.matched.load()) {
    const uint64_t now = now_ns();
    const bool impossible = is_impossible(held, rule(hold.other));
    if (impossible && !has_matched(hold)) own.impossible.add(1);
    if (now >= deadline && !impossible) own.let_go.add(1);
    if (now >= deadline || impossible) break;
    const timespec rest = to_timespec(static_cast<int64_t>(shorter(deadline - now, held_look_ns)));
    raw_syscall(__NR_futex, as_word(watched.matched.raw()), FUTEX_WAIT, seen, as_word(&rest));
  }
  hide_held(held);
  watched.waiters.add(-1u);
}

void hold(const Rule& rule) {
  RuleState& own = state(rule);
  if (!is_controlled()) return wait_for_matches(rule, own);
  const Held how = hold_in_turn(rule);
  if (how == Held::let_go) own.let_go.add(1);
  if (how == Held::impossible) own.impossible.add(1);
}

void delay(uint64_t ns) {
  if (is_controlled())
    be_late_in_turn(static_cast<int64_t>(ns));
  else
    sleep_until(now_ns() + ns);
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
  const uint64_t began = traced_now();
  {
    Unguarded unguarded;
    sleep();
  }
  state(because).added_ns.add(traced_now() - began);
}

}  // namespace

bool has_matched(const Rule& hold) {
  return state(hold.other).matched.load() >= hold.count;
}

bool is_over(const Rule& hold) {
  return has_matched(hold) || can_come_no_more(rule(hold.other));
}

// Watches come last: the thread they release may end the process, and what is due here has begun.
Due due_at(const Moment& moment) {
  Due due;
  for_each_due(moment, false, [&](const Rule& rule) { add(due, rule, moment); });
  count_fired(due);
  for_each_due(moment, true, [](const Rule& rule) { tell_match(state(rule)); });
  return due;
}

bool plans_exit() {
  if (!attached()) return false;
  for (const PlanSite& site : memory().plan_sites)
    if (site.api == exit_api) return true;
  return false;
}

void visit_thread_end() {
  Guard guard;
  if (!guard || !attached()) return;
  for (uint32_t i = 0; i < memory().plan_sites.count; ++i)
    if (memory().plan_sites[i].api == thread_end_api)
      perform(due_at({static_cast<uint16_t>(i), Position::before, 0}), none);
}

void visit_exit() {
  static uint32_t exited = none;  // the process, as a fork inherits this
  if (!plans_exit() || exited == process_number()) return;
  Guard guard;
  const LoadedImage* executable = executable_image();
  if (!guard || executable == nullptr || !meet_this_thread()) return;
  exited = process_number();
  for (uint32_t i = 0; i < memory().plan_sites.count; ++i) {
    const PlanSite& site = memory().plan_sites[i];
    if (site.api == exit_api && site.image == executable->plan_number)
      perform(due_at({static_cast<uint16_t>(i), Position::before, 0}), none);
  }
}

void perform(const Due& due, uint32_t site) {
  if (!due.any()) return;
  mark_late();
  delay_began(due.delay_ns + (due.hold != nullptr ? due.hold->duration_ns : 0));
  const bool records = (plan().flags & record_events) != 0 && site != none;
  Event* event = records ? next_event(Worth::matters) : nullptr;
  if (event != nullptr)
    *event = {.enter_ns = traced_now(),
              .object = due.hold != nullptr ? number_of(*due.hold) + 1 : 0,
              .value = static_cast<int64_t>(due.delay_ns),
              .site = site,
              .stack = none,
              .api = delay_api,
              .flags = event_delayed | event_unfinished};
  if (due.hold != nullptr) be_late(*due.hold, [&] { hold(*due.hold); });
  if (due.delay != nullptr) be_late(*due.delay, [&] { delay(due.delay_ns); });
  delay_ended();
  if (event == nullptr) return;
  event->exit_ns = traced_now();
  event->flags = event_delayed;
}

}  // namespace unflake::agent
