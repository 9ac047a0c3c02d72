#include "agent/schedule/baton.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/raw.h"
#include "agent/real.h"
#include "agent/schedule/decisions.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

using namespace protocol;

long read_facts(const char* path, char* text, size_t size) {
  text[0] = '\0';
  const long file = raw_syscall(__NR_openat, AT_FDCWD, as_word(path), O_RDONLY | O_CLOEXEC);
  if (failed(file)) return -1;
  const long length = raw_syscall(__NR_read, file, as_word(text), static_cast<long>(size) - 1);
  raw_syscall(__NR_close, file);
  text[length > 0 ? length : 0] = '\0';
  return length;
}

bool has_lived(uint32_t process) {
  for (uint32_t i = 0; i < thread_count(); ++i)
    if (state->threads[i].process.load() == process) return true;
  return false;
}

bool read_signal_facts(uint32_t process, uint32_t tid, SignalFacts& facts) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%u/task/%u/status", process, tid);
  if (read_facts(path, text, sizeof text) <= 0) return false;
  const auto mask = [&](const char* name) {
    const char* at = strstr(text, name);
    return at != nullptr ? strtoul(at + strlen(name), nullptr, 16) : 0;
  };
  facts = {mask("\nSigPnd:") | mask("\nShdPnd:"), mask("\nSigBlk:"), mask("\nSigCgt:"),
           mask("\nSigIgn:")};
  return true;
}

namespace {

void set_turn(Participant& thread, TurnWord word) {
  thread.turn.store(word);
  raw_syscall(__NR_futex, as_word(thread.turn.raw()), FUTEX_WAKE, 1);
}

}  // namespace

void give_to(Participant& next) {
  control().switches.add_alone(1);
  state->holder.store(next.number | deciding);
  set_turn(next, has_turn);
}

char state_of(uint32_t process, uint32_t tid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%u/task/%u/stat", process, tid);
  if (read_facts(path, text, sizeof text) <= 0) return '?';
  const char* end = strrchr(text, ')');
  return end != nullptr && end[1] != '\0' ? end[2] : '?';
}

namespace {

constexpr int64_t look_ns = 5'000'000;
constexpr uint64_t longest_computation_ns = 200'000'000;

// --- Threads and processes, as the system sees them ---

// On a busy machine a thread that is about to sleep, or would not have to after all, can wait for a
// processor for long, and already counts as asleep. In which call it is is told only once it does
// not run any more.
bool is_in_call(const Participant& thread) {
  char path[64], text[16];
  snprintf(path, sizeof path, "/proc/%u/task/%u/syscall", thread.process.load(), thread.tid.load());
  return read_facts(path, text, sizeof text) <= 0 || text[0] != 'r';
}

// Of one thread, as the kernel numbers its clock; of another process only the whole has one.
uint64_t cpu_time_of(const Participant& thread) {
  timespec time{};
  const uint32_t clock =
      is_own(thread) ? ~thread.tid.load() << 3 | 6 : ~thread.process.load() << 3 | 2;
  raw_syscall(__NR_clock_gettime, static_cast<int>(clock), as_word(&time));
  return static_cast<uint64_t>(to_ns(time));
}

// A thread that has ended leaves its stack and its memory to others: whoever comes next must find
// the same of it in every run.
void let_thread_die() {
  const uint32_t tid = state->dying.load();
  if (tid == 0) return;
  for (int tries = 0; tries < 20'000 && raw_syscall(__NR_tkill, tid, 0) == 0; ++tries)
    raw_syscall(__NR_sched_yield);
  state->dying.store(0);
}

// Of a process that has ended but still is in its parent's books; 0: it is not.
pid_t parent_of(uint32_t process) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%u/stat", process);
  if (read_facts(path, text, sizeof text) <= 0) return 0;
  const char* end = strrchr(text, ')');
  return end != nullptr && strlen(end) > 4 ? atoi(end + 4) : 0;
}

// What it has open is closed and its parent hears of it only then. One that cannot write what is
// left of its output, because nobody reads it, is not waited for.
void let_process_die() {
  constexpr int64_t between_looks = 50'000;
  constexpr int most_looks_asleep = 400;
  const uint32_t process = state->dying_process.load();
  if (process == 0 || process == own_process) return;
  int asleep = 0;
  while (!is_gone(process) && asleep < most_looks_asleep) {
    asleep += state_of(process, process) == 'S';
    const timespec time = to_timespec(between_looks);
    raw_syscall(__NR_nanosleep, as_word(&time), 0);
  }
  if (asleep >= most_looks_asleep) note_unrepeatable("a process that does not end");
  state->dying_process.store(0);
  let_signal_arrive(parent_of(process), 0, SIGCHLD);
}

// A program that was started under control and has not taken part since.
void note_outsider(const Participant& lost) {
  char text[128];
  snprintf(text, sizeof text, "the program %s, which is not controlled", lost.program);
  note_unrepeatable(text);
}

// --- Questions ---

// Others wait for the answer, and touch nothing until then.
void tell_about_own_threads() {
  fire_own_timers();
  for_each_living([](Participant& thread) {
    if (!is_own(thread)) return;
    thread.is_ready = is_ready(thread);
    thread.may_time_out = may_time_out(thread);
    thread.timer = timer_of(thread);
    thread.blocker = holder_of_object(thread.next);
    thread.told_in = state->round;
  });
}

void answer(Participant& me) {
  tell_about_own_threads();
  if (me.turn.change(is_asked, not_its_turn))
    raw_syscall(__NR_futex, as_word(me.turn.raw()), FUTEX_WAKE, 1);
}

// Whether there was an answer.
bool ask(Participant& thread) {
  constexpr int most_waits = 40;
  set_turn(thread, is_asked);
  for (int waits = 0; thread.turn.load() == is_asked; ++waits) {
    const timespec time = to_timespec(look_ns);
    raw_syscall(__NR_futex, as_word(thread.turn.raw()), FUTEX_WAIT, is_asked, as_word(&time));
    const char now = state_of(thread.process.load(), thread.tid.load());
    if (now == 'R') --waits;  // it will answer once it gets a processor
    const bool gone = waits > 0 && is_gone(thread.process.load());
    if (!gone && waits < most_waits) continue;
    if (!thread.turn.change(is_asked, not_its_turn)) break;
    if (gone)
      bury(thread.process.load());
    else
      note_unrepeatable("a process that does not answer");
    return false;
  }
  return true;
}

bool can_answer(const Participant& thread) {
  return !thread.is_expected && (thread.next.wait != Wait::outside || thread.returned.load() != 0);
}

}  // namespace

bool ask_process(uint32_t process) {
  Participant* deputy = find_living([&](const Participant& thread) {
    return thread.process.load() == process && can_answer(thread);
  });
  return deputy != nullptr && ask(*deputy);
}

void ask_other_processes() {
  if (!state->has_processes) return;
  ++state->round;
  for_each_living([](Participant& thread) {
    if (is_own(thread) || thread.told_in == state->round || !only_own_process_knows(thread)) return;
    if (!ask(thread)) thread.is_ready = thread.may_time_out = false;
    thread.told_in = state->round;
  });
}

bool is_gone(uint32_t process) {
  const char now = state_of(process, process);
  return now == 'Z' || now == 'X' || now == '?';
}

void bury(uint32_t process) {
  for_each_living([&](Participant& thread) {
    if (thread.process.load() != process) return;
    if (thread.is_expected) note_outsider(thread);
    thread.life = Life::ended;
    state->sampler.end(thread.number);
  });
  forget_timers_of(process);
}

void leave_turn_to_others(const Participant& me) {
  state->left_by = me.number;
  state->dying_process.store(own_process);
  bury(own_process);
  Participant* deputy = find_living(can_answer);
  if (deputy == nullptr) return state->holder.store(nobody);
  state->holder.store(deputy->number | deciding);
  set_turn(*deputy, is_to_decide);
}

namespace {

// --- Threads out of sight ---

void note_lost(const Participant& lost, bool sleeps) {
  if (lost.is_expected) return note_outsider(lost);
  char text[128];
  const uint16_t api = lost.next.api;
  const char* call = api < static_cast<uint16_t>(Api::count) ? api_facts[api].name : "its start";
  snprintf(text, sizeof text, "thread %u %s after %s", lost.number,
           sleeps ? "blocked in a call that is not controlled" : "computed without a switch point",
           call);
  note_unrepeatable(text);
}

// What a thread that waits for its turn has seen of the one that has it.
struct Watch {
  uint32_t holder = none;
  uint64_t steps = 0;
  uint64_t cpu = 0;
};

// Whether the watcher goes on itself.
bool decide_instead(const Participant& running, Participant& watcher) {
  Participant& next = decide(running);
  if (&next == &watcher) return true;
  give_to(next);
  return false;
}

// Nobody has done anything since the last look.
bool sees_no_progress(Watch& watch, uint32_t holder, const Participant& thread) {
  const uint64_t steps = control().steps.load();
  if (holder == watch.holder && steps == watch.steps) return true;
  watch = {holder, steps, cpu_time_of(thread)};
  return false;
}

void lose(Participant& lost, bool sleeps) {
  control().taken.add_alone(1);
  note_lost(lost, sleeps);
  lost.next.wait = Wait::outside;
  lost.next.deadline = forever;
}

// By a process of this run: that one may be waiting for it. A debugger from outside stops a thread
// for as long as its user likes.
bool is_stopped_from_within(const Participant& thread, char now) {
  constexpr char tracer_line[] = "\nTracerPid:";
  if (now != 't') return now == 'T';
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%u/task/%u/status", thread.process.load(), thread.tid.load());
  if (read_facts(path, text, sizeof text) <= 0) return false;
  const char* at = strstr(text, tracer_line);
  return at != nullptr &&
         has_lived(static_cast<uint32_t>(strtoul(at + strlen(tracer_line), nullptr, 10)));
}

// By a thread that waits for its turn. The holder may be in a call that nobody has foreseen, or in
// a loop that waits for memory to change, or its process was killed; then the baton goes to
// somebody else. Whether this thread has got it.
bool take_baton_from_the_lost(Participant& watcher, Watch& watch) {
  const uint32_t holder = state->holder.load();
  if (holder == nobody) {
    if (!state->holder.change(nobody, watcher.number | deciding)) return false;
    return decide_instead(state->threads[state->left_by], watcher);
  }
  const uint32_t number = holder & ~deciding;
  if (number == watcher.number || number >= thread_count()) {
    watch.holder = none;
    return false;
  }
  Participant& lost = state->threads[number];
  if (!sees_no_progress(watch, holder, lost)) return false;
  if (!is_own(lost) && is_gone(lost.process.load())) {
    if (!state->holder.change(holder, watcher.number | deciding)) return false;
    bury(lost.process.load());
    return decide_instead(lost, watcher);
  }
  if ((holder & deciding) != 0) return false;
  const char now = state_of(lost.process.load(), lost.tid.load());
  const bool sleeps = (now == 'S' && is_in_call(lost)) || is_stopped_from_within(lost, now);
  if (!sleeps && cpu_time_of(lost) - watch.cpu < longest_computation_ns) return false;
  if (!state->holder.change(holder, watcher.number | deciding)) return false;
  if (control().steps.load() != watch.steps ||
      (!can_go_on_without(lost) &&
       (!sleeps || (next_to_time_out() == nullptr && next_timer() == forever)))) {
    state->holder.change(watcher.number | deciding, holder);
    return false;
  }
  lose(lost, sleeps);
  return decide_instead(lost, watcher);
}

// Whether this thread goes on: something came of waiting for its turn.
bool serve_turn(Participant& me, Watch& watch) {
  switch (me.turn.load()) {
    case has_turn:
      return true;
    case is_asked:
      answer(me);
      return false;
    case is_to_decide:
      me.turn.store(not_its_turn);
      let_process_die();
      return decide_instead(state->threads[state->left_by], me);
    default:
      break;
  }
  const timespec look = to_timespec(look_ns);
  const long result =
      raw_syscall(__NR_futex, as_word(me.turn.raw()), FUTEX_WAIT, not_its_turn, as_word(&look));
  return result == -ETIMEDOUT && take_baton_from_the_lost(me, watch);
}

}  // namespace

void wait_for_turn(Participant& me) {
  Watch watch;
  while (!serve_turn(me, watch)) continue;
  me.turn.store(not_its_turn);
  let_thread_die();
  state->sampler.find_lists(tables.selected.first, tables.remaining.first);
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
