#include "agent/schedule/scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "agent/process.h"
#include "agent/raw.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"
#include "agent/schedule/baton.h"
#include "agent/schedule/decisions.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

bool detail::controlled = false;
State* state = nullptr;

namespace {

using namespace protocol;

constexpr uint8_t yields_until_demoted = 4;

constinit thread_local Participant* self __attribute__((tls_model("initial-exec"))) = nullptr;

// A thread that yields does nothing that others wait for; all else may be what they wait for.
void begin_step(Participant& me) {
  if (!me.next.yields) {
    me.yields = 0;
    for (uint32_t i = 0; i < thread_count(); ++i) state->threads[i].is_skipped = false;
  }
  state->sampler.execute(me.number);
}

void announce(Participant& me, const Step& step) {
  me.next = step;
  me.woken = me.timed_out = me.interrupted = false;
  me.enabled_since = -1;
  me.waits_since = control().steps.load();
  control().steps.add_alone(1);
  state->exit_decisions = step.exits ? 0 : state->exit_decisions + 1;
  if (step.exits) state->sampler.announce_exit();
  if (step.yields) {
    me.is_skipped = true;
    if (++me.yields >= yields_until_demoted) state->sampler.demote(me.number);
  }
  state->sampler.announce(me.number, {step.object, step.writes});
}

void pass_baton(Participant& me) {
  Participant& next = decide(me);
  if (&next == &me) return;
  give_to(next);
  wait_for_turn(me);
}

Step plain_step() {
  Step step{};
  step.api = no_api;
  step.site = none;
  step.deadline = forever;
  step.may_switch = true;
  return step;
}

// Others see it once it lives.
Participant* take_slot() {
  const uint32_t number = state->used.add(1);
  if (number >= most_scheduled_threads) return nullptr;
  Participant& added = state->threads[number];
  added.number = number;
  added.next = plain_step();
  return &added;
}

bool is_thread_sanitized() {
  return dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

void refuse(ControlReport& out, const char* why) {
  snprintf(out.reason, sizeof out.reason, "%s", why);
  out.state.store(2);
}

State* map_state() {
  const long mapped = raw_syscall(__NR_mmap, 0, sizeof(State), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return failed(mapped) ? nullptr : reinterpret_cast<State*>(mapped);
}

void begin_sampler() {
  const SchedulePlan& plan = state->tables.schedule[0];
  state->sampler.begin({plan.sampler, plan.seed, plan.depth, plan.length,
                        state->tables.selected.first, state->tables.selected.count,
                        state->tables.remaining.first, state->tables.remaining.count});
}

void introduce(Participant& me) {
  self = &me;
  me.tid.store(static_cast<uint32_t>(raw_syscall(__NR_gettid)));
  me.handle = pthread_self();
  if (this_thread.number != none) memory().threads[this_thread.number].scheduled = me.number + 1;
}

// A thread that nobody has announced: the C library or a clone() has made it.
Participant* join_uninvited() {
  Participant* me = take_slot();
  if (me == nullptr) return nullptr;
  introduce(*me);
  me->next.wait = Wait::outside;
  __atomic_store_n(&me->life, Life::lives, __ATOMIC_RELEASE);
  enter(*me);
  note_unrepeatable("a thread that pthread_create has not made");
  leave(*me);
  return me;
}

Participant* me_or_join() {
  if (self != nullptr || this_thread.stage == Stage::ended) return self;
  return join_uninvited();
}

// Nobody else would let time pass while this thread waits for a timer out of sight; and the timer
// must not go off before it waits.
void leave_timer_behind() {
  constexpr int64_t until_it_waits = 2'000'000;
  if (next_to_time_out() != nullptr || next_timer() == forever) return;
  pass_virtual_time(next_timer() - virtual_now());
  fire_timers(until_it_waits);
}

bool does_anyone_live() {
  for (uint32_t i = 0; i < thread_count(); ++i)
    if (state->threads[i].life == Life::lives) return true;
  return false;
}

bool can_be_interrupted(Wait wait) {
  return wait == Wait::sleep || wait == Wait::descriptors || wait == Wait::semaphore ||
         wait == Wait::futex || wait == Wait::child;
}

}  // namespace

void begin_control() {
  ScheduleTables tables;
  if (!find_schedule(tables) || process_number() != 0) return;
  if (is_thread_sanitized())
    return refuse(tables.control[0],
                  "it is built with ThreadSanitizer, which has a schedule of its own");
  state = map_state();
  if (state == nullptr) return refuse(tables.control[0], "there is no memory for it");
  state->tables = tables;
  begin_sampler();
  state->program_dice = Dice(tables.schedule[0].seed);
  begin_virtual_clock();
  at_thread_end = end_turns;
  pthread_atfork(nullptr, nullptr, forget_control);
  control().state.store(1);
  Participant& first = *take_slot();
  introduce(first);
  announce(first, plain_step());
  first.life = Life::lives;
  state->holder.store(first.number);
  detail::controlled = true;
}

void forget_control() {
  detail::controlled = false;
  self = nullptr;
}

const ScheduleTables& schedule_tables() {
  return state->tables;
}

Participant* this_participant() {
  return self;
}

bool goes_on(const Step& step) {
  Participant* me = me_or_join();
  if (me == nullptr) return true;
  if (state->holder.load() != me->number) return false;
  me->next = step;
  me->woken = me->interrupted = false;
  return is_ready(*me);
}

namespace {

// While there is one thread and no timer, there is nothing to decide.
bool is_alone(const Participant& me) {
  return thread_count() == 1 && state->holder.load() == me.number && next_timer() == forever;
}

void go_on_alone(Participant& me, const Step& step) {
  pass_virtual_time(step_ns);
  control().steps.add_alone(1);
  me.next.api = step.api;
  me.woken = me.timed_out = me.interrupted = false;
}

}  // namespace

void take_step(const Step& step) {
  const int error = errno;
  Participant* me = me_or_join();
  if (me == nullptr || is_deciding(*me)) return;
  if (step.wait == Wait::nothing && is_alone(*me)) return go_on_alone(*me, step);
  enter(*me);
  announce(*me, step);
  pass_baton(*me);
  begin_step(*me);
  leave(*me);
  errno = error;
}

void leave_sight(const char* call) {
  Participant* me = me_or_join();
  if (me == nullptr || is_deciding(*me)) return;
  const int error = errno;
  enter(*me);
  Step step = plain_step();
  step.wait = Wait::outside;
  announce(*me, step);
  note_unrepeatable(call);
  if (can_go_on_without(*me)) {
    give_to(decide(*me));
  } else {
    leave_timer_behind();
    leave(*me);  // whoever waits for its turn takes it when there is something to do
  }
  errno = error;
}

void come_back() {
  if (self == nullptr || is_deciding(*self)) return;
  const int error = errno;
  enter(*self);
  self->next = plain_step();
  leave(*self);
  errno = error;
}

Participant* expect_child() {
  if (self == nullptr || is_deciding(*self)) return nullptr;
  enter(*self);
  Participant* child = take_slot();
  if (child == nullptr) note_unrepeatable("more threads than can be controlled");
  leave(*self);
  return child;
}

void child_was_created(Participant& child, pthread_t handle) {
  enter(*self);
  child.handle = handle;
  announce(child, plain_step());
  child.life = Life::lives;
  leave(*self);
}

void child_was_not_created(Participant& child) {
  child.life = Life::ended;
}

void await_first_turn(Participant& me) {
  self = &me;
  me.tid.store(static_cast<uint32_t>(raw_syscall(__NR_gettid)));
  wait_for_turn(me);
  begin_step(me);
  leave(me);
}

void write_scheduled_number() {
  if (self != nullptr) introduce(*self);
}

void end_turns() {
  Participant* me = self;
  if (me == nullptr || !is_controlled()) return;
  enter(*me);
  announce(*me, plain_step());
  me->life = Life::ended;
  state->sampler.end(me->number);
  self = nullptr;
  const uint32_t tid = me->tid.load();
  if (tid != static_cast<uint32_t>(raw_syscall(__NR_getpid))) state->dying.store(tid);
  if (does_anyone_live())
    give_to(decide(*me));
  else
    state->holder.store(none & ~deciding);
}

Participant* participant_of(pthread_t handle) {
  for (uint32_t i = thread_count(); i-- > 0;) {
    Participant& thread = state->threads[i];
    if (thread.handle == handle && thread.life != Life::unborn && !thread.joined) return &thread;
  }
  return nullptr;
}

bool is_nobody_else_left() {
  for (uint32_t i = 0; i < thread_count(); ++i) {
    const Participant& thread = state->threads[i];
    if (&thread != self && thread.life != Life::unborn && !thread.joined) return false;
  }
  return true;
}

namespace {

bool waits_in(const Participant& thread, Wait wait, const volatile void* object) {
  return thread.life == Life::lives && thread.next.wait == wait && thread.next.address == object &&
         !thread.woken;
}

Participant* longest_waiting(Wait wait, const volatile void* object) {
  Participant* found = nullptr;
  for (uint32_t i = 0; i < thread_count(); ++i) {
    Participant& thread = state->threads[i];
    if (waits_in(thread, wait, object) &&
        (found == nullptr || thread.waits_since < found->waits_since))
      found = &thread;
  }
  return found;
}

// A condition gives the mutex back, for which its waiters now wait.
void wake_one(Participant& thread) {
  thread.woken = true;
  thread.next.deadline = forever;
  if (thread.next.wait != Wait::condition) return;
  thread.next.wait = Wait::mutex;
  thread.next.address = thread.next.mutex;
}

}  // namespace

uint32_t wake(Wait wait, const volatile void* object, uint32_t count) {
  uint32_t woken = 0;
  for (; woken < count; ++woken) {
    Participant* next = longest_waiting(wait, object);
    if (next == nullptr) break;
    wake_one(*next);
  }
  return woken;
}

uint32_t count_waiting(Wait wait, const volatile void* object) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < thread_count(); ++i) count += waits_in(state->threads[i], wait, object);
  return count;
}

InterruptedTurn begin_handler() {
  if (!is_controlled() || self == nullptr) return {};
  Participant& me = *self;
  if ((state->holder.load() & ~deciding) == me.number) return {};
  me.returned.store(1);
  wait_for_turn(me);
  me.returned.store(0);
  const InterruptedTurn interrupted{true, me.next, me.woken, me.timed_out, me.waits_since};
  me.next = plain_step();
  leave(me);
  return interrupted;
}

void end_handler(const InterruptedTurn& interrupted) {
  if (!is_controlled() || self == nullptr) return;
  Participant& me = *self;
  if (!interrupted.was_waiting) {
    if (is_deciding(me)) me.interrupted = can_be_interrupted(me.next.wait);
    return;
  }
  enter(me);
  me.next = interrupted.next;
  me.woken = interrupted.woken;
  me.timed_out = interrupted.timed_out;
  me.waits_since = interrupted.waits_since;
  me.interrupted = can_be_interrupted(me.next.wait);
  note_unrepeatable("a signal handler");
  Participant& next = decide(me);
  if (&next == &me)
    me.turn.store(1);
  else
    give_to(next);
}

int64_t virtual_now() {
  return static_cast<int64_t>(control().virtual_ns.load());
}

void pass_virtual_time(int64_t ns) {
  if (ns > 0) control().virtual_ns.store(control().virtual_ns.load() + static_cast<uint64_t>(ns));
}

void note_unrepeatable(const char* call) {
  ControlReport& out = control();
  if (out.left.load() != 0) return;
  snprintf(out.reason, sizeof out.reason, "%s", call);
  out.left.store(1);
}

uint64_t draw_by_seed() {
  return state->program_dice.next();
}

uint64_t steps_so_far() {
  return control().steps.load();
}

// Only calls at which a thread can be cancelled end early.
void interrupt_cancelled(pthread_t thread) {
  Participant* cancelled = participant_of(thread);
  if (cancelled == nullptr || cancelled->life != Life::lives) return;
  const Wait wait = cancelled->next.wait;
  if (wait == Wait::condition || wait == Wait::thread || can_be_interrupted(wait))
    cancelled->interrupted = true;
}

}  // namespace unflake::agent
