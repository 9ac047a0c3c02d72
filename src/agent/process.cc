#include "agent/process.h"

#include <linux/futex.h>
#include <linux/prctl.h>
#include <string.h>
#include <time.h>

#include "agent/clock.h"
#include "agent/images.h"
#include "agent/memory.h"
#include "agent/raw.h"
#include "agent/thread_state.h"

namespace unflake::agent {
namespace {

using namespace protocol;

uint32_t number = none;
Shared<uint64_t> unknown_threads;
Shared<uint32_t> late_threads;
Shared<uint32_t> delayed_threads;
Shared<uint32_t> changes;  // of the two above; a futex
Shared<uint64_t> last_delay_end;
Shared<uint64_t> delayed_until;  // at the latest, by the delays that have begun

void tell_change() {
  changes.add(1);
  raw_syscall(__NR_futex, as_word(changes.raw()), FUTEX_WAKE_PRIVATE, 1);
}

void wait_for_change(uint32_t seen, uint64_t at_most_ns) {
  const timespec time = to_timespec(static_cast<int64_t>(at_most_ns));
  raw_syscall(__NR_futex, as_word(changes.raw()), FUTEX_WAIT_PRIVATE, seen, as_word(&time));
}

// This thread cannot wait for itself.
uint32_t others(const Shared<uint32_t>& threads, bool including_this) {
  const uint32_t count = threads.load();
  return including_this && count > 0 ? count - 1 : count;
}

uint64_t later(uint64_t one, uint64_t other) {
  return one > other ? one : other;
}

}  // namespace

void meet_process() {
  const uint32_t parent = number;
  late_threads.store(0);
  delayed_threads.store(0);
  delayed_until.store(0);
  Report& out = report();
  number = out.processes_used.add(1);
  if (number >= max_processes) {
    out.dropped[dropped_processes].add(1);
    number = none;
    return;
  }
  Process& process = out.processes[number];
  process.state.store(1);
  process.pid = static_cast<uint32_t>(raw_syscall(__NR_getpid));
  process.parent = parent;
  const LoadedImage* executable = executable_image();
  process.executable = executable != nullptr ? executable->number : none;
  process.started_ns = now_ns();
  raw_syscall(__NR_prctl, PR_GET_NAME, as_word(process.name));
  process.state.store(2);
}

uint32_t process_number() {
  return number;
}

void process_degraded(Degraded what) {
  if (number == none) return;
  __atomic_fetch_or(report().processes[number].degraded.raw(), what, __ATOMIC_RELAXED);
}

uint64_t next_unknown_thread() {
  return unknown_threads.add(1);
}

void late_thread_began() {
  late_threads.add(1);
}

void late_thread_ended() {
  late_threads.add(-1u);
  tell_change();
}

void delay_began(uint64_t at_most_ns) {
  delayed_threads.add(1);
  const uint64_t until = now_ns() + at_most_ns;
  for (uint64_t old = delayed_until.load(); old < until; old = delayed_until.load())
    if (delayed_until.change(old, until)) break;
}

void delay_ended() {
  last_delay_end.store(now_ns());
  delayed_threads.add(-1u);
  tell_change();
}

void end_process() {
  if (attached() && number != none) report().processes[number].ended_ns.store(now_ns());
}

// Only delays that have begun by now count: a thread that is made late again and again would hold
// the exit forever.
void hold_exit() {
  if (!attached() || (plan().flags & protocol::hold_exit) == 0) return;
  const uint64_t began = now_ns();
  const uint64_t latest = later(began, delayed_until.load());
  while (others(late_threads, this_thread.was_late) > 0) {
    const uint32_t seen = changes.load();
    const uint64_t now = now_ns();
    const uint64_t since = delayed_threads.load() > 0 ? now : later(began, last_delay_end.load());
    const uint64_t end = (since < latest ? since : latest) + plan().hold_exit_ns;
    if (now >= end) return;
    wait_for_change(seen, end - now);
  }
}

}  // namespace unflake::agent
