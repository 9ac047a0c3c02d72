#pragma once

#include <signal.h>

#include "agent/schedule/participants.h"

// One thread of a controlled run runs at a time, whatever its process: the one that holds the
// baton. It gives the baton away when it is about to do something at which another thread may come
// first, and waits until it is chosen again.
namespace unflake::agent {

namespace detail {
extern bool controlled;
}

// Whether threads of this process take turns.
inline bool is_controlled() {
  return detail::controlled;
}

// Takes control of this process, which has one thread, when the plan has a schedule for it. A
// program that a controlled process has started takes part in its turns.
void begin_control();

// This thread's own; nullptr: it has none.
Participant* this_participant();

const protocol::ScheduleTables& schedule_tables();

// Announces what this thread is about to do, and comes back when it is chosen: it can do it now
// without blocking, unless `timed_out` or `interrupted` of its participant say otherwise.
void take_step(const Step& step);

// Whether taking this step would leave everything as it is.
bool goes_on(const Step& step);

// From here on the thread is out of sight, as in a call that blocks for reasons of its own; and
// back.
void leave_sight(const char* call);
void come_back();

// A thread that this one is about to create: it waits for its first turn. nullptr: no room.
Participant* expect_child();
void child_was_created(Participant& child, pthread_t handle);
void child_was_not_created(Participant& child);
// The same for processes, by fork() or as a program of its own.
Participant* expect_fork();
Participant* expect_program(char* const* arguments);
void process_was_created(Participant& child, pid_t process);
void process_was_not_created(Participant& child);
// Around exec(), which comes back when there is no such program.
void become_program(char* const* arguments);
void stay_program();
void await_first_turn(Participant& self);
// Once the thread is known to the report.
void write_scheduled_number();
// The last thing that a thread does.
void end_turns();
// The last thing that a process does.
void end_turns_of_process();

Participant* participant_of(pthread_t handle);

// Whether all other threads have been joined, or were never born: whoever is left is alone under
// every schedule.
bool is_nobody_else_left();

// Under which threads wait for this object, in all processes that share it or in this one alone.
uint64_t queue_of(const volatile void* object, bool is_shared);
// Threads that wait in this way in this queue, the longest first, at most `count` of them; returns
// how many.
uint32_t wake(Wait wait, uint64_t queue, uint32_t count);
uint32_t count_waiting(Wait wait, uint64_t queue);

// Around a handler of the program: a thread that waits for its turn must not run one meanwhile.
struct InterruptedTurn {
  bool was_waiting;
  Step next;
  bool woken;
  bool timed_out;
  uint64_t waits_since;
};
InterruptedTurn begin_handler();
void end_handler(const InterruptedTurn& interrupted, bool was_sent_in_turn);
// By a process of this run, which has waited until the signal was there.
bool was_sent_in_turn(const siginfo_t& info);
// After a signal was sent: until it has done what it does at once. `tid` 0: to the whole process.
void let_signal_arrive(pid_t process, pid_t tid, int signal);

// The virtual clock: ns since control began. Only who holds the baton moves it.
int64_t virtual_now();
void pass_virtual_time(int64_t ns);

uint64_t steps_so_far();

// Whoever is cancelled must be able to notice.
void interrupt_cancelled(pthread_t thread);

// Random numbers for the program: the same in every run of a schedule.
uint64_t draw_by_seed();

// The run may be another one next time, because of this call.
void note_unrepeatable(const char* call);

}  // namespace unflake::agent
