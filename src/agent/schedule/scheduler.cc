#include "agent/schedule/scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/hash.h"
#include "agent/process.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"
#include "agent/schedule/baton.h"
#include "agent/schedule/decisions.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

using namespace protocol;

bool detail::controlled = false;
State* state = nullptr;
ScheduleTables tables;
uint32_t own_process = 0;

namespace {

constexpr uint32_t yields_until_demoted = 4;

constinit thread_local Participant* self __attribute__((tls_model("initial-exec"))) = nullptr;

// A thread that yields does nothing that others wait for; all else may be what they wait for.
void begin_step(Participant& me) {
  if (!me.next.yields) {
    me.yields = 0;
    for_each_living([](Participant& thread) { thread.is_skipped = false; });
  }
  state->sampler.execute(me.number);
}

// Descriptors, files and children have other names in every process, and its end is what others may
// look for: such a step may have to do with any other.
Step as_seen_by_processes(Step step) {
  constexpr uint64_t least_of_kinds = uint64_t{1} << 60;
  if (!step.exits && (step.object < least_of_kinds || step.wait == Wait::thread)) return step;
  step.object = ~uint64_t{0};
  step.writes = true;
  return step;
}

void announce(Participant& me, const Step& announced) {
  const Step step = state->has_processes ? as_seen_by_processes(announced) : announced;
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
  added.process.store(own_process);
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

State* find_state() {
  const bool fits = tables.turns.count * sizeof(uint64_t) >= sizeof(State);
  return fits ? reinterpret_cast<State*>(tables.turns.first) : nullptr;
}

void begin_sampler() {
  const SchedulePlan& plan = tables.schedule[0];
  state->sampler.begin({plan.sampler, plan.seed, plan.depth, plan.length, tables.selected.first,
                        tables.selected.count, tables.remaining.first, tables.remaining.count});
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

bool can_be_interrupted(Wait wait) {
  return wait == Wait::sleep || wait == Wait::descriptors || wait == Wait::semaphore ||
         wait == Wait::futex || wait == Wait::child || wait == Wait::signal ||
         wait == Wait::handler;
}

}  // namespace

namespace {

constexpr char has_own_schedule[] =
    "it is built with ThreadSanitizer, which has a schedule of its own";

// The process that this one is about to become by a fork; nullptr: nobody has announced it.
Participant* forked = nullptr;

void go_out_of_control() {
  detail::controlled = false;
  self = nullptr;
}

// Before anything else happens in a forked child: it waits for its first turn.
void take_part_after_fork() {
  if (!is_controlled()) return;
  own_process = static_cast<uint32_t>(raw_syscall(__NR_getpid));
  if (forked == nullptr) return go_out_of_control();
  Participant& me = *forked;
  forked = nullptr;
  me.process.store(own_process);
  await_first_turn(me);
  introduce(me);
}

void begin_first_process() {
  begin_sampler();
  state->program_dice = Dice(tables.schedule[0].seed);
  begin_virtual_clock();
  control().state.store(1);
  Participant& first = *take_slot();
  introduce(first);
  announce(first, plain_step());
  first.life = Life::lives;
  state->holder.store(first.number);
}

Participant* find_own() {
  return find_living([](const Participant& thread) { return is_own(thread); });
}

// Whoever starts a program writes it down, when it knows its number.
Participant* await_own() {
  constexpr int64_t between_looks = 50'000;
  Participant* own = find_own();
  while (own == nullptr && state->starting.load() > 0) {
    const timespec time = to_timespec(between_looks);
    raw_syscall(__NR_nanosleep, as_word(&time), 0);
    own = find_own();
  }
  return own;
}

// The thread that has called exec() is the only one left.
void end_other_threads(const Participant& me) {
  for_each_living([&](Participant& thread) {
    if (is_own(thread) && &thread != &me) thread.life = Life::ended;
  });
}

Participant& who_became_program(Participant& any) {
  const uint32_t holder = state->holder.load() & ~deciding;
  if (holder >= thread_count() || !is_own(state->threads[holder])) return any;
  return state->threads[holder];
}

// That the system has given to the program at its start.
void pin_random_bytes() {
  constexpr size_t count = 16;
  auto* bytes = reinterpret_cast<unsigned char*>(getauxval(AT_RANDOM));
  for (size_t i = 0; bytes != nullptr && i < count; ++i)
    bytes[i] = static_cast<unsigned char>(draw_by_seed());
}

bool take_part_after_exec() {
  Participant* own = await_own();
  if (own == nullptr) {
    note_unrepeatable("a process that neither fork nor posix_spawn has started");
    return false;
  }
  Participant& me = who_became_program(*own);
  end_other_threads(me);
  introduce(me);
  enter(me);
  me.is_expected = false;
  me.next = plain_step();
  leave(me);
  if (!is_thread_sanitized()) return true;
  leave_sight(has_own_schedule);
  self = nullptr;
  return false;
}

}  // namespace

void begin_control() {
  if (!find_schedule(tables)) return;
  const bool is_first = process_number() == 0;
  if (!is_first && control().state.load() != 1) return;
  if (is_first && is_thread_sanitized()) return refuse(control(), has_own_schedule);
  state = find_state();
  if (state == nullptr) return refuse(control(), "there is no memory for it");
  own_process = static_cast<uint32_t>(raw_syscall(__NR_getpid));
  if (is_first) begin_first_process();
  if (!is_first && !take_part_after_exec()) return;
  at_thread_end = end_turns;
  pthread_atfork(nullptr, nullptr, take_part_after_fork);
  take_time_stamps();
  pin_random_bytes();
  detail::controlled = true;
}

const ScheduleTables& schedule_tables() {
  return tables;
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

Participant* expect_fork() {
  return forked = expect_child();
}

namespace {

// A short-lived one has no name any more when somebody asks for it.
void expect(Participant& program, char* const* arguments) {
  const char* path = arguments != nullptr && arguments[0] != nullptr ? arguments[0] : "";
  const char* slash = strrchr(path, '/');
  snprintf(program.program, sizeof program.program, "%s", slash != nullptr ? slash + 1 : path);
  program.is_expected = true;
}

}  // namespace

Participant* expect_program(char* const* arguments) {
  Participant* child = expect_child();
  if (child == nullptr) return nullptr;
  expect(*child, arguments);
  state->starting.add(1);
  return child;
}

void process_was_created(Participant& child, pid_t process) {
  child.process.store(static_cast<uint32_t>(process));
  child.tid.store(static_cast<uint32_t>(process));
  child_was_created(child, 0);
  if (child.is_expected) state->starting.add(-1u);
  state->has_processes = true;
  forked = nullptr;
}

void process_was_not_created(Participant& child) {
  if (child.is_expected) state->starting.add(-1u);
  forked = nullptr;
  child_was_not_created(child);
}

namespace {

// A child of vfork() has the memory of its parent, which waits for it.
bool is_borrowed() {
  return raw_syscall(__NR_getpid) != own_process;
}

}  // namespace

void become_program(char* const* arguments) {
  if (self != nullptr && !is_borrowed()) expect(*self, arguments);
}

void stay_program() {
  if (self != nullptr && !is_borrowed()) self->is_expected = false;
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
  state->left_by = me->number;
  if (find_living([](const Participant&) { return true; }) != nullptr)
    give_to(decide(*me));
  else
    state->holder.store(nobody);
}

// Out of sight, it has no turn to leave.
void end_turns_of_process() {
  Participant* me = self;
  if (me == nullptr || !is_controlled() || is_borrowed()) return;
  if (!is_deciding(*me)) enter(*me);
  go_out_of_control();
  leave_turn_to_others(*me);
}

Participant* participant_of(pthread_t handle) {
  for (uint32_t i = thread_count(); i-- > 0;) {
    Participant& thread = state->threads[i];
    if (thread.handle == handle && is_own(thread) && thread.life != Life::unborn && !thread.joined)
      return &thread;
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

bool waits_in(const Participant& thread, Wait wait, uint64_t queue) {
  return thread.next.wait == wait && thread.next.queue == queue && !thread.woken;
}

Participant* longest_waiting(Wait wait, uint64_t queue) {
  Participant* found = nullptr;
  for_each_living([&](Participant& thread) {
    if (waits_in(thread, wait, queue) &&
        (found == nullptr || thread.waits_since < found->waits_since))
      found = &thread;
  });
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

namespace {

// A line of /proc/self/maps: "BEGIN-END rw-s OFFSET DEVICE INODE PATH". What shared memory is in
// it at this address, the same for all who have mapped it; 0: none.
uint64_t shared_place(const char* line, uint64_t address) {
  char* at = nullptr;
  const uint64_t begin = strtoul(line, &at, 16);
  if (*at != '-') return 0;
  const uint64_t end = strtoul(at + 1, &at, 16);
  if (address < begin || address >= end || strlen(at) < 6 || at[4] != 's') return 0;
  const uint64_t offset = strtoul(at + 6, &at, 16);
  const uint64_t major = strtoul(at, &at, 16);
  if (*at != ':') return 0;
  const uint64_t minor = strtoul(at + 1, &at, 16);
  const uint64_t inode = strtoul(at, &at, 10);
  return mix(mix(major << 32 | minor, inode), offset + address - begin) | 1;
}

uint64_t find_shared_place(uint64_t address) {
  const long file =
      raw_syscall(__NR_openat, AT_FDCWD, as_word("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (failed(file)) return 0;
  char text[8192];
  size_t kept = 0;
  uint64_t found = 0;
  for (;;) {
    const long size = raw_syscall(__NR_read, file, as_word(text + kept),
                                  static_cast<long>(sizeof text - 1 - kept));
    if (size <= 0) break;
    text[kept + static_cast<size_t>(size)] = '\0';
    char* line = text;
    for (char* end; found == 0 && (end = strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      found = shared_place(line, address);
    }
    kept = found == 0 ? strlen(line) : 0;
    if (found != 0 || kept == sizeof text - 1) break;
    memmove(text, line, kept);
  }
  raw_syscall(__NR_close, file);
  return found;
}

}  // namespace

uint64_t queue_of(const volatile void* object, bool is_shared) {
  const auto address = reinterpret_cast<uint64_t>(object);
  const uint64_t shared = is_shared ? find_shared_place(address) : 0;
  return shared != 0 ? shared : mix(own_process, address) & ~uint64_t{1};
}

uint32_t wake(Wait wait, uint64_t queue, uint32_t count) {
  uint32_t woken = 0;
  for (; woken < count; ++woken) {
    Participant* next = longest_waiting(wait, queue);
    if (next == nullptr) break;
    wake_one(*next);
  }
  return woken;
}

uint32_t count_waiting(Wait wait, uint64_t queue) {
  uint32_t count = 0;
  for_each_living([&](const Participant& thread) { count += waits_in(thread, wait, queue); });
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

bool was_sent_in_turn(const siginfo_t& info) {
  const bool has_sender = info.si_code == SI_USER || info.si_code == SI_TKILL ||
                          info.si_code == SI_QUEUE ||
                          (info.si_signo == SIGCHLD && info.si_code > 0);
  return has_sender && is_controlled() && has_lived(static_cast<uint32_t>(info.si_pid));
}

namespace {

bool waits_to_handle(uint32_t process, uint32_t tid) {
  return find_living([&](const Participant& thread) {
           return thread.process.load() == process && thread.returned.load() != 0 &&
                  (tid == 0 || thread.tid.load() == tid);
         }) != nullptr;
}

bool does_nothing_by_default(int signal) {
  return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT ||
         signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// Whether nothing more comes of a signal by itself: it waits to be taken or handled, or was for
// nobody, or the process is gone.
bool has_arrived(uint32_t process, uint32_t tid, int signal) {
  SignalFacts facts;
  if (is_gone(process) || !read_signal_facts(process, tid != 0 ? tid : process, facts)) return true;
  const uint64_t bit = uint64_t{1} << (signal - 1);
  if ((facts.ignored & bit) != 0 || (facts.blocked & facts.pending & bit) != 0) return true;
  if ((facts.caught & bit) != 0) return waits_to_handle(process, tid);
  return does_nothing_by_default(signal);
}

// It has been handled by now.
bool is_to_self(uint32_t process, uint32_t tid) {
  if (self == nullptr || process != own_process) return false;
  return tid == self->tid.load() || (tid == 0 && self->tid.load() == process);
}

}  // namespace

namespace {

// Whoever still waits for a processor may get one soon.
bool arrives(uint32_t process, uint32_t thread, int signal) {
  constexpr int most_looks = 400;
  for (int looks = 0; looks < most_looks;) {
    if (has_arrived(process, thread, signal)) return true;
    looks += state_of(process, thread != 0 ? thread : process) != 'R';
    const timespec time = to_timespec(50'000);
    raw_syscall(__NR_nanosleep, as_word(&time), 0);
  }
  return false;
}

}  // namespace

// Nobody is to take the turn from a thread that waits here.
void let_signal_arrive(pid_t to, pid_t tid, int signal) {
  const auto process = static_cast<uint32_t>(to);
  const auto thread = static_cast<uint32_t>(tid);
  if (to <= 0 || signal <= 0 || signal > 64 || is_to_self(process, thread) || !has_lived(process))
    return;
  const bool is_turn =
      self != nullptr && state->holder.change(self->number, self->number | deciding);
  if (!arrives(process, thread, signal)) note_unrepeatable("a signal that did not arrive");
  if (is_turn) leave(*self);
}

void end_handler(const InterruptedTurn& interrupted, bool was_sent_in_turn) {
  if (!is_controlled() || self == nullptr) return;
  Participant& me = *self;
  ++me.handlers;
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
  if (!was_sent_in_turn) note_unrepeatable("a signal handler");
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
