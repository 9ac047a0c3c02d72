#include "agent/process.h"

#include <fcntl.h>
#include <linux/futex.h>
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

void read_name(char* name, size_t size) {
  const long file = raw_syscall(__NR_openat, AT_FDCWD, as_word("/proc/self/comm"), O_RDONLY, 0);
  if (failed(file)) return;
  const long length = raw_syscall(__NR_read, file, as_word(name), static_cast<long>(size) - 1);
  raw_syscall(__NR_close, file);
  if (length > 0 && name[length - 1] == '\n') name[length - 1] = '\0';
}

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

}  // namespace

void meet_process() {
  const uint32_t parent = number;
  late_threads.store(0);
  delayed_threads.store(0);
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
  read_name(process.name, sizeof process.name);
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

void delay_began() {
  delayed_threads.add(1);
}

void delay_ended() {
  last_delay_end.store(now_ns());
  delayed_threads.add(-1u);
  tell_change();
}

void end_process() {
  if (attached() && number != none) report().processes[number].ended_ns.store(now_ns());
}

void hold_exit() {
  if (!attached() || (plan().flags & protocol::hold_exit) == 0) return;
  const uint64_t began = now_ns();
  while (others(late_threads, this_thread.was_late) > 0) {
    const uint32_t seen = changes.load();
    const uint64_t since = delayed_threads.load() > 0
                               ? now_ns()
                               : (last_delay_end.load() > began ? last_delay_end.load() : began);
    const uint64_t end = since + plan().hold_exit_ns;
    if (now_ns() >= end) return;
    wait_for_change(seen, end - now_ns());
  }
}

}  // namespace unflake::agent
