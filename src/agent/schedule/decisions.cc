#include "agent/schedule/decisions.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "agent/process.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/visit.h"
#include "agent/schedule/baton.h"
#include "agent/schedule/peers.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {
namespace {

// glibc's words, as they have been since its version 2.25.

constexpr int robust = 16, priority_inherited = 32, kind_mask = 3;

template <class T>
T read(const volatile void* address, size_t offset = 0) {
  return __atomic_load_n(
      reinterpret_cast<const T*>(
          const_cast<const char*>(static_cast<const volatile char*>(address)) + offset),
      __ATOMIC_ACQUIRE);
}

const pthread_mutex_t& as_mutex(const volatile void* address) {
  return *static_cast<const pthread_mutex_t*>(const_cast<const void*>(address));
}
const pthread_rwlock_t& as_rwlock(const volatile void* address) {
  return *static_cast<const pthread_rwlock_t*>(const_cast<const void*>(address));
}

uint32_t mutex_word(const pthread_mutex_t& mutex) {
  return static_cast<uint32_t>(read<int>(&mutex.__data.__lock));
}

uint32_t mutex_owner(const pthread_mutex_t& mutex) {
  if ((mutex.__data.__kind & (robust | priority_inherited)) != 0)
    return mutex_word(mutex) & FUTEX_TID_MASK;
  return static_cast<uint32_t>(read<int>(&mutex.__data.__owner));
}

bool is_free(const pthread_mutex_t& mutex, uint32_t tid) {
  const uint32_t word = mutex_word(mutex);
  if (word == 0) return true;
  const int kind = mutex.__data.__kind;
  if ((kind & (robust | priority_inherited)) != 0 && (word & FUTEX_OWNER_DIED) != 0) return true;
  const bool answers_owner = (kind & kind_mask) == PTHREAD_MUTEX_RECURSIVE_NP ||
                             (kind & kind_mask) == PTHREAD_MUTEX_ERRORCHECK_NP;
  return answers_owner && mutex_owner(mutex) == tid;
}

// Who has it himself gets an error at once.
bool can_read(const pthread_rwlock_t& lock, uint32_t tid) {
  const auto writer = static_cast<uint32_t>(read<int>(&lock.__data.__cur_writer));
  return writer == 0 || writer == tid;
}
bool can_write(const pthread_rwlock_t& lock, uint32_t tid) {
  const auto writer = static_cast<uint32_t>(read<int>(&lock.__data.__cur_writer));
  return writer == tid || (writer == 0 && read<unsigned>(&lock.__data.__readers) >> 3 == 0);
}

bool has_event(const Step& step) {
  return raw_syscall(__NR_poll, as_word(step.descriptors), step.descriptor_count, 0) != 0;
}

bool has_news_of_child(int type, int id, int options) {
  siginfo_t info{};
  const long result =
      raw_syscall(__NR_waitid, type, id, as_word(&info), options | WNOHANG | WNOWAIT, 0);
  return failed(result) || info.si_pid != 0;
}

}  // namespace

bool only_own_process_knows(const Participant& thread) {
  switch (thread.next.wait) {
    case Wait::mutex:
    case Wait::spin_lock:
    case Wait::reader:
    case Wait::writer:
    case Wait::semaphore:
    case Wait::once:
    case Wait::descriptors:
    case Wait::child:
      return true;
    case Wait::condition:  // its time-out needs the mutex
      return thread.next.deadline != forever;
    default:
      return false;
  }
}

bool is_ready(const Participant& thread) {
  if (thread.returned.load() != 0 || thread.interrupted) return true;
  const Step& step = thread.next;
  if (step.wait != Wait::condition && only_own_process_knows(thread) && !is_own(thread))
    return thread.is_ready;
  const uint32_t tid = thread.tid.load();
  switch (step.wait) {
    case Wait::nothing:
      return true;
    case Wait::mutex:
      return is_free(as_mutex(step.address), tid);
    case Wait::spin_lock:
      return read<int>(step.address) > 0;
    case Wait::reader:
      return can_read(as_rwlock(step.address), tid);
    case Wait::writer:
      return can_write(as_rwlock(step.address), tid);
    case Wait::semaphore:
      return read<uint32_t>(step.address) > 0;
    case Wait::once:
      return (read<int>(step.address) & 3) != 1;
    case Wait::thread:
      return state->threads[step.id].life == Life::ended;
    case Wait::descriptors:
      return has_event(step);
    case Wait::child:
      return has_news_of_child(step.id_type, step.id, step.options);
    case Wait::condition:
    case Wait::barrier:
    case Wait::futex:
      return thread.woken;
    case Wait::signal: {
      SignalFacts facts;
      return read_signal_facts(thread.process.load(), tid, facts) &&
             (facts.pending & step.signals) != 0;
    }
    case Wait::held:
      return is_over(memory().rules[static_cast<uint32_t>(step.id)]);
    case Wait::late_threads:
      return find_living([&](const Participant& other) {
               return &other != &thread && other.late_until > 0 &&
                      other.process.load() == thread.process.load();
             }) == nullptr;
    case Wait::sleep:
    case Wait::handler:
    case Wait::outside:
      return false;
  }
  return false;
}

bool may_time_out(const Participant& thread) {
  const Step& step = thread.next;
  if (step.deadline == forever) return false;
  if (step.wait != Wait::condition) return true;
  return is_own(thread) ? is_free(*step.mutex, thread.tid.load()) : thread.may_time_out;
}

int64_t timer_of(const Participant& thread) {
  if (thread.next.wait != Wait::descriptors) return forever;
  if (!is_own(thread)) return thread.timer;
  int64_t first = forever;
  for (uint32_t i = 0; state->timers_used > 0 && i < thread.next.descriptor_count; ++i) {
    const int64_t timer = timer_of_descriptor(thread.next.descriptors[i].fd);
    if (timer < first) first = timer;
  }
  return first;
}

uint32_t holder_of_object(const Step& step) {
  switch (step.wait) {
    case Wait::mutex:
      return mutex_owner(as_mutex(step.address));
    case Wait::reader:
    case Wait::writer:
      return static_cast<uint32_t>(read<int>(&as_rwlock(step.address).__data.__cur_writer));
    case Wait::thread:
      return state->threads[step.id].tid.load();
    default:
      return 0;
  }
}

}  // namespace unflake::agent

namespace unflake::agent {

using namespace protocol;

namespace {

constexpr uint32_t late_exit_at_most = 2000;  // decisions

void pause_for(int64_t ns) {
  const timespec time = to_timespec(ns);
  raw_syscall(__NR_nanosleep, as_word(&time), 0);
}

bool is_candidate(Participant& thread, int64_t horizon) {
  if (thread.life != Life::lives) return false;
  if (is_ready(thread) || timer_of(thread) <= horizon) return true;
  return thread.next.deadline <= horizon && may_time_out(thread);
}

}  // namespace

Participant* next_to_time_out() {
  Participant* first = nullptr;
  for_each_living([&](Participant& thread) {
    if (thread.next.deadline == forever) return;
    if (first == nullptr || thread.next.deadline < first->next.deadline) first = &thread;
  });
  return first;
}

bool can_go_on_without(const Participant& thread) {
  const int64_t now = virtual_now();
  ask_other_processes();
  return find_living([&](Participant& other) {
           return &other != &thread && is_candidate(other, now);
         }) != nullptr;
}

namespace {

// How far time may pass while somebody could go on: nobody is to be passed over for longer.
int64_t horizon_of_stall() {
  const int64_t now = virtual_now();
  const auto stall = static_cast<int64_t>(tables.schedule[0].stall_ns);
  if (stall <= 0) return now;
  int64_t horizon = forever;
  for_each_living([&](Participant& thread) {
    if (!is_ready(thread)) {
      thread.enabled_since = -1;
      return;
    }
    if (thread.enabled_since < 0) thread.enabled_since = now;
    const int64_t latest = thread.enabled_since + stall;
    if (latest < horizon) horizon = latest;
  });
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

bool only_spinners_are_left() {
  for (uint32_t i = 0; i < state->candidate_count; ++i)
    if (!state->threads[state->candidates[i]].is_skipped) return false;
  return state->candidate_count > 0;
}

void collect_candidates() {
  ask_other_processes();
  const int64_t horizon = horizon_of_stall();
  state->candidate_count = 0;
  for_each_living([&](Participant& thread) {
    if (is_candidate(thread, horizon)) state->candidates[state->candidate_count++] = thread.number;
  });
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

bool is_out_of_sight(const Participant& thread) {
  return thread.next.wait == Wait::outside;
}

// A process that was killed takes no part any more.
void bury_the_dead() {
  for_each_living([](const Participant& thread) {
    if (!is_own(thread) && is_gone(thread.process.load())) bury(thread.process.load());
  });
}

// Really waits for descriptors that threads wait for; whether there are any.
bool look_at_descriptors(int ms) {
  constexpr uint32_t most = 256;
  pollfd all[most];
  uint32_t count = 0;
  bool are_there_any = false;
  for_each_living([&](const Participant& thread) {
    if (thread.next.wait != Wait::descriptors) return;
    are_there_any = true;
    for (uint32_t j = 0; is_own(thread) && j < thread.next.descriptor_count && count < most; ++j)
      all[count++] = thread.next.descriptors[j];
  });
  if (are_there_any) raw_syscall(__NR_poll, as_word(all), count, ms);
  return are_there_any;
}

bool has_children() {
  siginfo_t info{};
  return raw_syscall(__NR_waitid, P_ALL, 0, as_word(&info), WEXITED | WNOHANG | WNOWAIT, 0) !=
         -ECHILD;
}

// Processes that this thread has started and that never took turns. Where the system does not list
// children, all are taken for such.
bool has_outsiders(const Participant& thread) {
  if (is_own(thread) && !has_children()) return false;
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%u/task/%u/children", thread.process.load(),
           thread.tid.load());
  if (read_facts(path, text, sizeof text) < 0) return is_own(thread);
  char* at = text;
  for (char* end; *at != '\0'; at = end) {
    const auto child = static_cast<uint32_t>(strtoul(at, &end, 10));
    if (end == at) break;
    if (!has_lived(child)) return true;
  }
  return false;
}

// A child that does not take turns.
bool waits_for_outsider(const Participant& thread) {
  const Step& step = thread.next;
  if (step.wait != Wait::child) return false;
  if (step.id_type == P_PID) return !has_lived(static_cast<uint32_t>(step.id));
  return find_living([&](const Participant& other) {
           return other.process.load() != thread.process.load();
         }) == nullptr;
}

bool waits_for_world() {
  bury_the_dead();
  return find_living(is_out_of_sight) != nullptr || find_living(waits_for_outsider) != nullptr ||
         find_living(has_outsiders) != nullptr || find_living(waits_for_outside_peer) != nullptr;
}

uint32_t number_of_tid(uint32_t tid) {
  const Participant* found =
      find_living([&](const Participant& thread) { return tid != 0 && thread.tid.load() == tid; });
  return found != nullptr ? found->number : none;
}

[[noreturn]] void end_in_deadlock() {
  uint32_t count = 0;
  for_each_living([&](const Participant& thread) {
    if (count >= tables.deadlocked.count) return;
    StuckThread& stuck = tables.deadlocked[count++];
    stuck.object = thread.next.object;
    stuck.thread = thread.number;
    stuck.site = thread.next.site;
    stuck.held_by = number_of_tid(is_own(thread) ? holder_of_object(thread.next) : thread.blocker);
  });
  control().deadlocks.store(count);
  end_process();
  for_each_living([](const Participant& thread) {
    if (!is_own(thread)) raw_syscall(__NR_kill, thread.process.load(), SIGKILL);
  });
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

// Who only looks whether something has happened, with nobody else about, may be waiting for time to
// pass, the more surely the longer it looks; or it computes, and looks now and then. So a look
// takes a little longer each time. Whether it has come to the next deadline.
bool spins_until_deadline(const Participant& spinner) {
  const Participant* waiting = next_to_time_out();
  const int64_t timer = next_timer();
  const int64_t deadline =
      waiting != nullptr && waiting->next.deadline < timer ? waiting->next.deadline : timer;
  const int64_t span = step_ns * spinner.yields;
  if (deadline - virtual_now() <= span) return true;
  if (deadline != forever) pass_virtual_time(span);
  return false;
}

// The one for which this thread waits, when it comes before its deadline.
bool let_timer_go_off(const Participant& thread) {
  const int64_t timer = timer_of(thread);
  if (timer == forever || timer > thread.next.deadline) return false;
  pass_virtual_time(timer - virtual_now());
  fire_timers();
  return true;
}

bool waits_for_plan(const Participant& thread) {
  return thread.next.wait == Wait::held || thread.next.wait == Wait::late_threads;
}

// When nobody waits for a time but because of the plan: who was held last goes on after all.
bool give_up_a_hold() {
  Participant* youngest = nullptr;
  const Participant* other = find_living([&](Participant& thread) {
    if (thread.next.wait == Wait::held &&
        (youngest == nullptr || thread.waits_since > youngest->waits_since))
      youngest = &thread;
    return thread.next.deadline != forever && !waits_for_plan(thread);
  });
  if (youngest == nullptr || other != nullptr || next_timer() != forever) return false;
  youngest->interrupted = true;
  return true;
}

// Nobody can go on: time passes, or the world acts, or that was it.
void wait_for_something(uint32_t& looks) {
  constexpr uint32_t most_looks = 2;
  if (waits_for_world()) {
    const Participant* next = next_to_time_out();
    if ((next == nullptr || next->next.deadline > virtual_now()) && next_timer() > virtual_now())
      return let_world_go_on(500'000);
  } else if (looks < most_looks && look_at_descriptors(1)) {
    ++looks;  // what was sent may need a moment to arrive, which is none of the program's
    return;
  }
  if (give_up_a_hold()) return;
  Participant* first = next_to_time_out();
  if (is_timer_first(first)) return jump_to_timer();
  if (first != nullptr) return time_out(*first);
  if (look_at_descriptors(20)) return;
  end_in_deadlock();
}

const PlannedDecision* planned_at(uint64_t point) {
  const auto& decisions = tables.decisions;
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
  const auto& enabled = tables.enabled;
  const uint32_t first = enabled.used->load();
  if (first + state->candidate_count > enabled.count) return none;
  for (uint32_t i = 0; i < state->candidate_count; ++i) {
    const uint32_t thread = state->candidates[i];
    const bool is_ready = state->threads[thread].enabled_since >= 0;
    enabled[first + i] = static_cast<uint16_t>(thread | (is_ready ? enabled_is_ready : 0));
  }
  enabled.used->store(first + state->candidate_count);
  return first;
}

void write_point(const Participant& running, uint64_t number, uint32_t chosen) {
  if (number >= tables.points.count) return;
  ScheduledPoint& point = tables.points[number];
  point.object = running.next.object;
  point.site = running.next.site;
  point.first_enabled = write_enabled();
  point.enabled_count = static_cast<uint16_t>(state->candidate_count);
  point.thread = static_cast<uint16_t>(running.number);
  point.chosen = static_cast<uint16_t>(chosen);
  point.writes = running.next.writes;
  const bool is_watched = running.next.api == probe_api && running.next.stack != 0;
  point.place = is_watched ? address_in(point.object, image_at(point.object)) : 0;
  point.stack = is_watched ? running.next.stack - 1 : none;
  point.time_us = static_cast<uint32_t>(virtual_now() / 1000);
}

// It has looked, nobody else could go on, and it will look again: no event.
bool is_idle_look(const Participant& running, uint32_t chosen) {
  return running.next.yields && running.next.api != probe_api && state->candidate_count == 1 &&
         chosen == running.number;
}

void digest(const Participant& chosen) {
  const uint64_t word = (uint64_t{chosen.number} << 16) | chosen.next.api;
  control().digest.store((control().digest.load() ^ word) * 0x100000001b3);
}

}  // namespace

namespace {

// Those before it have ended and need no more looks.
void skip_the_ended() {
  while (state->first < thread_count() && state->threads[state->first].life == Life::ended)
    ++state->first;
}

}  // namespace

Participant& decide(const Participant& running) {
  state->sampler.find_lists(tables.selected.first, tables.remaining.first);
  skip_the_ended();
  pass_virtual_time(step_ns);
  if (next_timer() <= virtual_now()) fire_timers();
  uint32_t looks = 0;
  for (collect_candidates(); state->candidate_count == 0; collect_candidates())
    wait_for_something(looks);
  const bool jumps = only_spinners_are_left() && spins_until_deadline(running);
  Participant* waiting = jumps ? next_to_time_out() : nullptr;
  if (jumps && is_timer_first(waiting)) jump_to_timer();
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
  if (thread_count() > 1 && !is_idle_look(running, chosen)) {
    control().points.store(point + 1);
    write_point(running, point, chosen);
  }
  Participant& next = state->threads[chosen];
  if (!is_ready(next) && !let_timer_go_off(next)) time_out(next);
  digest(next);
  return next;
}

}  // namespace unflake::agent
