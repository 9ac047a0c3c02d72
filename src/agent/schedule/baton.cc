#include "agent/schedule/baton.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>

#include "agent/clock.h"
#include "agent/raw.h"
#include "agent/schedule/decisions.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

using namespace protocol;

void give_to(Participant& next) {
  control().switches.add_alone(1);
  state->holder.store(next.number | deciding);
  next.turn.store(1);
  raw_syscall(__NR_futex, as_word(next.turn.raw()), FUTEX_WAKE_PRIVATE, 1);
}

namespace {

constexpr int64_t look_ns = 5'000'000;
constexpr uint64_t longest_computation_ns = 200'000'000;

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

// By a thread that waits for its turn. The holder may be in a call that nobody has foreseen, or in
// a loop that waits for memory to change; then the baton goes to somebody else. Whether this thread
// has got it.
bool take_baton_from_the_lost(Participant& watcher, uint32_t& seen_holder, uint64_t& seen_steps,
                              uint64_t& seen_cpu) {
  const uint32_t holder = state->holder.load();
  const uint64_t steps = control().steps.load();
  if ((holder & deciding) != 0 || holder == watcher.number || holder >= thread_count()) {
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
  if (!state->holder.change(holder, watcher.number | deciding)) return false;
  if (!can_go_on_without(lost) &&
      (!sleeps || (next_to_time_out() == nullptr && next_timer() == forever))) {
    state->holder.change(watcher.number | deciding, holder);
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

}  // namespace

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
  if (state->holder.change(me.number, me.number | deciding)) return;
  me.returned.store(1);
  wait_for_turn(me);
  me.returned.store(0);
}

void leave(Participant& me) {
  state->holder.store(me.number);
}

}  // namespace unflake::agent
