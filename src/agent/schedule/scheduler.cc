#include "agent/schedule/scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/clock.h"
#include "agent/process.h"
#include "agent/raw.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"
#include "agent/schedule/enabled.h"
#include "agent/schedule/timers.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

bool detail::controlled = false;

namespace {

using namespace protocol;

constexpr uint32_t busy = 0x80000000;  // the holder decides, and is not to be disturbed
constexpr int64_t step_ns = 1000;      // that pass with every decision
constexpr int64_t look_ns = 5'000'000;
constexpr uint64_t longest_computation_ns = 200'000'000;
constexpr uint32_t late_exit_at_most = 2000;  // decisions
constexpr uint8_t yields_until_demoted = 4;

struct State {
  Participant threads[most_scheduled_threads];
  uint32_t candidates[most_scheduled_threads];
  Shared<uint32_t> used;  // of `threads`; it may run past their room
  uint32_t candidate_count;
  Shared<uint32_t> holder;  // its number, with `busy` or without
  Shared<uint32_t> dying;   // a thread that has ended but is still there
  uint32_t next_decision;
  uint32_t exit_decisions;
  ScheduleTables tables;
  Dice program_dice;
  Sampler sampler;
};

State* state = nullptr;
constinit thread_local Participant* self __attribute__((tls_model("initial-exec"))) = nullptr;

uint32_t thread_count() {
  const uint32_t used = state->used.load();
  return used < most_scheduled_threads ? used : most_scheduled_threads;
}

ControlReport& control() {
  return state->tables.control[0];
}

void pause_for(int64_t ns) {
  const timespec time = to_timespec(ns);
  raw_syscall(__NR_nanosleep, as_word(&time), 0);
}

// --- The baton ---

void become_holder(uint32_t word) {
  state->holder.store(word);
}

void give_to(Participant& next) {
  control().switches.add_alone(1);
  become_holder(next.number | busy);
  next.turn.store(1);
  raw_syscall(__NR_futex, as_word(next.turn.raw()), FUTEX_WAKE_PRIVATE, 1);
}

// A thread that has ended leaves its stack and its memory to others: whoever comes next must find
// the same of it in every run.
void let_die() {
  const uint32_t tid = state->dying.load();
  if (tid == 0) return;
  const long process = raw_syscall(__NR_getpid);
  for (int tries = 0; tries < 20'000 && raw_syscall(__NR_tgkill, process, tid, 0) == 0; ++tries)
    raw_syscall(__NR_sched_yield);
  state->dying.store(0);
}

Participant& decide(Participant& running);
bool take_baton_from_the_lost(Participant& watcher, uint32_t& seen_holder, uint64_t& seen_steps,
                              uint64_t& seen_cpu);

void wait_for_turn(Participant& me) {
  uint32_t seen_holder = none;
  uint64_t seen_steps = 0, seen_cpu = 0;
  while (me.turn.load() == 0) {
    const timespec look = to_timespec(look_ns);
    const long result =
        raw_syscall(__NR_futex, as_word(me.turn.raw()), FUTEX_WAIT_PRIVATE, 0, as_word(&look));
    if (result == -ETIMEDOUT && take_baton_from_the_lost(me, seen_holder, seen_steps, seen_cpu))
      break;
  }
  me.turn.store(0);
  let_die();
}

// After this the thread may touch what belongs to the holder.
void enter(Participant& me) {
  if (state->holder.change(me.number, me.number | busy)) return;
  me.returned.store(1);
  wait_for_turn(me);
  me.returned.store(0);
}

void leave(Participant& me) {
  become_holder(me.number);
}

// --- Deciding ---

bool is_candidate(Participant& thread, int64_t horizon) {
  if (thread.life != Life::lives) return false;
  if (is_ready(thread)) return true;
  return thread.next.deadline <= horizon && may_time_out(thread);
}

// How far time may pass while somebody could go on: nobody is to be passed over for longer.
int64_t horizon_of_stall() {
  const int64_t now = virtual_now();
  const auto stall = static_cast<int64_t>(state->tables.schedule[0].stall_ns);
  if (stall <= 0) return now;
  int64_t horizon = forever;
  for (uint32_t i = 0; i < thread_count(); ++i) {
    Participant& thread = state->threads[i];
    if (thread.life != Life::lives || !is_ready(thread)) {
      thread.enabled_since = -1;
      continue;
    }
    if (thread.enabled_since < 0) thread.enabled_since = now;
    const int64_t latest = thread.enabled_since + stall;
    if (latest < horizon) horizon = latest;
  }
  return horizon == forever || horizon < now ? now : horizon;
}

template <class Keep>
void keep_candidates(Keep keep) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < state->candidate_count; ++i)
    if (keep(state->threads[state->candidates[i]]))
      state->candidates[kept++] = state->candidates[i];
  if (kept > 0) state->candidate_count = kept;
}

Participant* next_to_time_out() {
  Participant* first = nullptr;
  for (uint32_t i = 0; i < thread_count(); ++i) {
    Participant& thread = state->threads[i];
    if (thread.life != Life::lives || thread.next.deadline == forever) continue;
    if (first == nullptr || thread.next.deadline < first->next.deadline) first = &thread;
  }
  return first;
}

bool only_spinners_are_left() {
  for (uint32_t i = 0; i < state->candidate_count; ++i)
    if (!state->threads[state->candidates[i]].is_skipped) return false;
  return state->candidate_count > 0;
}

void collect_candidates() {
  const int64_t horizon = horizon_of_stall();
  state->candidate_count = 0;
  for (uint32_t i = 0; i < thread_count(); ++i)
    if (is_candidate(state->threads[i], horizon)) state->candidates[state->candidate_count++] = i;
  keep_candidates([](const Participant& thread) { return !thread.is_skipped; });
  if (state->sampler.exits_late() && state->exit_decisions < late_exit_at_most)
    keep_candidates([](const Participant& thread) { return !thread.next.exits; });
}

// A condition that times out needs its mutex, and waits for that from now on.
void time_out(Participant& thread) {
  if (thread.next.deadline > virtual_now()) pass_virtual_time(thread.next.deadline - virtual_now());
  thread.timed_out = true;
  thread.next.deadline = forever;
  if (thread.next.wait == Wait::condition) {
    thread.next.wait = Wait::mutex;
    thread.next.address = thread.next.mutex;
  } else {
    thread.next.wait = Wait::nothing;
  }
}

bool is_someone_out_of_sight() {
  for (uint32_t i = 0; i < thread_count(); ++i)
    if (state->threads[i].life == Life::lives && state->threads[i].next.wait == Wait::outside)
      return true;
  return false;
}

// Really waits for descriptors that threads wait for; whether there are any.
bool look_at_descriptors(int ms) {
  constexpr uint32_t most = 256;
  pollfd all[most];
  uint32_t count = 0;
  for (uint32_t i = 0; i < thread_count(); ++i) {
    const Participant& thread = state->threads[i];
    if (thread.life != Life::lives || thread.next.wait != Wait::descriptors) continue;
    for (uint32_t j = 0; j < thread.next.descriptor_count && count < most; ++j)
      all[count++] = thread.next.descriptors[j];
  }
  if (count > 0) raw_syscall(__NR_poll, as_word(all), count, ms);
  return count > 0;
}

bool waits_for_world() {
  for (uint32_t i = 0; i < thread_count(); ++i)
    if (state->threads[i].life == Life::lives && state->threads[i].next.wait == Wait::child)
      return true;
  return is_someone_out_of_sight() || has_children();
}

uint32_t number_of_tid(uint32_t tid) {
  for (uint32_t i = 0; tid != 0 && i < thread_count(); ++i)
    if (state->threads[i].tid.load() == tid && state->threads[i].life == Life::lives) return i;
  return none;
}

[[noreturn]] void end_in_deadlock() {
  uint32_t count = 0;
  for (uint32_t i = 0; i < thread_count() && count < state->tables.deadlocked.count; ++i) {
    const Participant& thread = state->threads[i];
    if (thread.life != Life::lives) continue;
    StuckThread& stuck = state->tables.deadlocked[count++];
    stuck.object = thread.next.object;
    stuck.thread = i;
    stuck.site = thread.next.site;
    stuck.held_by = number_of_tid(holder_of_object(thread.next));
  }
  control().deadlocks.store(count);
  end_process();
  for (;;) {
    raw_syscall(__NR_kill, raw_syscall(__NR_getpid), SIGKILL);
    raw_syscall(__NR_exit_group, 1);
  }
}

// What the world does takes real time, and then virtual time passes with it.
void let_world_go_on(int64_t ns) {
  const uint64_t began = now_ns();
  if (!look_at_descriptors(1)) pause_for(ns);
  pass_virtual_time(static_cast<int64_t>(now_ns() - began));
}

// The next timer of the program, when it comes before this thread's deadline.
bool is_timer_first(const Participant* thread) {
  const int64_t timer = next_timer();
  return timer != forever && (thread == nullptr || timer <= thread->next.deadline);
}

void jump_to_timer() {
  pass_virtual_time(next_timer() - virtual_now());
  fire_timers();
}

// Nobody can go on: time passes, or the world acts, or that was it.
void wait_for_something(uint32_t& looks) {
  Participant* first = next_to_time_out();
  const bool world = waits_for_world();
  if (world || (looks < 2 && look_at_descriptors(0))) {
    ++looks;
    const int64_t next = first != nullptr ? first->next.deadline : forever;
    if (!world || (next > virtual_now() && next_timer() > virtual_now()))
      return let_world_go_on(500'000);
  }
  if (is_timer_first(first)) return jump_to_timer();
  if (first != nullptr) return time_out(*first);
  if (look_at_descriptors(20)) return;
  end_in_deadlock();
}

const PlannedDecision* planned_at(uint64_t point) {
  const auto& decisions = state->tables.decisions;
  while (state->next_decision < decisions.count && decisions[state->next_decision].point < point)
    ++state->next_decision;
  if (state->next_decision >= decisions.count) return nullptr;
  const PlannedDecision& next = decisions[state->next_decision];
  return next.point == point ? &next : nullptr;
}

uint32_t choose(const Participant& running, uint64_t point) {
  if (const PlannedDecision* planned = planned_at(point))
    for (uint32_t i = 0; i < state->candidate_count; ++i)
      if (state->candidates[i] == planned->thread) return planned->thread;
  return state->sampler.choose(state->candidates, state->candidate_count, running.number);
}

uint32_t write_enabled() {
  const auto& enabled = state->tables.enabled;
  const uint32_t first = enabled.used->load();
  if (first + state->candidate_count > enabled.count) return none;
  for (uint32_t i = 0; i < state->candidate_count; ++i)
    enabled[first + i] = static_cast<uint16_t>(state->candidates[i]);
  enabled.used->store(first + state->candidate_count);
  return first;
}

void write_point(const Participant& running, uint64_t number, uint32_t chosen) {
  if (number >= state->tables.points.count) return;
  ScheduledPoint& point = state->tables.points[number];
  point.object = running.next.object;
  point.site = running.next.site;
  point.first_enabled = write_enabled();
  point.enabled_count = static_cast<uint16_t>(state->candidate_count);
  point.thread = static_cast<uint16_t>(running.number);
  point.chosen = static_cast<uint16_t>(chosen);
  point.writes = running.next.writes;
}

void digest(const Participant& chosen) {
  const uint64_t word = (uint64_t{chosen.number} << 16) | chosen.next.api;
  control().digest.store((control().digest.load() ^ word) * 0x100000001b3);
}

// Who goes on. `running` has announced its next step.
Participant& decide(Participant& running) {
  pass_virtual_time(step_ns);
  if (next_timer() <= virtual_now()) fire_timers();
  uint32_t looks = 0;
  for (collect_candidates(); state->candidate_count == 0; collect_candidates())
    wait_for_something(looks);
  Participant* waiting = only_spinners_are_left() ? next_to_time_out() : nullptr;
  if (only_spinners_are_left() && is_timer_first(waiting)) jump_to_timer();
  uint32_t chosen = state->candidates[0];
  const uint64_t point = control().points.load();
  if (waiting != nullptr && may_time_out(*waiting)) {
    chosen = waiting->number;
    state->candidates[0] = chosen;
    state->candidate_count = 1;
  } else if (state->candidate_count > 1) {
    chosen = choose(running, point);
  }
  // Also where only one can go on: what it does then is a part of the order of events.
  if (thread_count() > 1) {
    control().points.store(point + 1);
    write_point(running, point, chosen);
  }
  Participant& next = state->threads[chosen];
  if (!is_ready(next)) time_out(next);
  digest(next);
  return next;
}

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

// --- Threads out of sight ---

char state_of(uint32_t tid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
  const long file = raw_syscall(__NR_openat, AT_FDCWD, as_word(path), O_RDONLY | O_CLOEXEC);
  if (failed(file)) return '?';
  const long size = raw_syscall(__NR_read, file, as_word(text), sizeof text - 1);
  raw_syscall(__NR_close, file);
  if (size <= 0) return '?';
  text[size] = '\0';
  const char* end = strrchr(text, ')');
  return end != nullptr && end[1] != '\0' ? end[2] : '?';
}

uint64_t cpu_time_of(uint32_t tid) {
  timespec time{};
  const long clock = static_cast<long>(~tid << 3 | 6);  // of one thread, as the kernel numbers it
  raw_syscall(__NR_clock_gettime, static_cast<int>(clock), as_word(&time));
  return static_cast<uint64_t>(to_ns(time));
}

void note_lost(const Participant& lost, bool sleeps) {
  char text[128];
  const uint16_t api = lost.next.api;
  const char* call = api < static_cast<uint16_t>(Api::count) ? api_facts[api].name : "its start";
  snprintf(text, sizeof text, "thread %u %s after %s", lost.number,
           sleeps ? "blocked in a call that is not controlled" : "computed without a switch point",
           call);
  note_unrepeatable(text);
}

bool someone_else_can_go_on(const Participant& lost) {
  const int64_t now = virtual_now();
  for (uint32_t i = 0; i < thread_count(); ++i)
    if (&state->threads[i] != &lost && is_candidate(state->threads[i], now)) return true;
  return false;
}

// By a thread that waits for its turn. The holder may be in a call that nobody has foreseen, or in
// a loop that waits for memory to change; then the baton goes to somebody else. Whether this thread
// has got it.
bool take_baton_from_the_lost(Participant& watcher, uint32_t& seen_holder, uint64_t& seen_steps,
                              uint64_t& seen_cpu) {
  const uint32_t holder = state->holder.load();
  const uint64_t steps = control().steps.load();
  if ((holder & busy) != 0 || holder == watcher.number || holder >= thread_count()) {
    seen_holder = none;
    return false;
  }
  Participant& lost = state->threads[holder];
  const uint64_t cpu = cpu_time_of(lost.tid.load());
  if (holder != seen_holder || steps != seen_steps) {
    seen_holder = holder;
    seen_steps = steps;
    seen_cpu = cpu;
    return false;
  }
  const bool sleeps = state_of(lost.tid.load()) == 'S';
  if (!sleeps && cpu - seen_cpu < longest_computation_ns) return false;
  if (!state->holder.change(holder, watcher.number | busy)) return false;
  if (!someone_else_can_go_on(lost) &&
      (!sleeps || (next_to_time_out() == nullptr && next_timer() == forever))) {
    state->holder.change(watcher.number | busy, holder);
    return false;
  }
  control().taken.add_alone(1);
  note_lost(lost, sleeps);
  lost.next.wait = Wait::outside;
  lost.next.deadline = forever;
  Participant& next = decide(watcher);
  if (&next == &watcher) return true;
  give_to(next);
  return false;
}

// --- Beginning and end ---

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

bool is_deciding(const Participant& me) {
  return state->holder.load() == (me.number | busy);
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
  become_holder(first.number);
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
  if (someone_else_can_go_on(*me)) {
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
    become_holder(none & ~busy);
}

Participant* participant_of(pthread_t handle) {
  for (uint32_t i = thread_count(); i-- > 0;) {
    Participant& thread = state->threads[i];
    if (thread.handle == handle && thread.life != Life::unborn && !thread.joined) return &thread;
  }
  return nullptr;
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
  if ((state->holder.load() & ~busy) == me.number) return {};
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
