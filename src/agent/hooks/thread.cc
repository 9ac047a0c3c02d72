#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "agent/hooks/time_values.h"
#include "agent/probes/probes.h"
#include "agent/real.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"
#include "agent/record/visit.h"
#include "agent/schedule/accesses.h"

namespace unflake::agent {

using protocol::Api;

namespace {

// What a new thread needs to begin: from its creator, who does not wait for it.
struct Start {
  protocol::Shared<uint32_t> taken;
  uint32_t site;
  uint16_t plan_site;
  protocol::Event* creation;  // nullptr: it is not recorded
  Birth birth;
  Participant* participant;  // nullptr: the run is not controlled
  void* (*routine)(void*);
  int (*c11_routine)(void*);
  void* argument;
};

// A start is free again as soon as its thread begins.
constexpr size_t starts_at_once = 1024;
Start starts[starts_at_once];
protocol::Shared<uint32_t> next_start;

Start* take_start(const Visit& visit) {
  for (size_t tries = 0; tries < starts_at_once; ++tries) {
    Start& start = starts[next_start.add(1) % starts_at_once];
    if (!start.taken.change(0, 1)) continue;
    start.site = visit.site();
    start.plan_site = visit.plan_site();
    start.creation = visit.event();
    return &start;
  }
  return nullptr;
}

// The new thread reports its handle: where its creator wanted it may be gone by now. Nor is it
// certain that the event is still the same, when the creator has been busy since.
void name_created(protocol::Event* event) {
  if (event == nullptr || event->object != 0) return;
  const Api api = static_cast<Api>(event->api);
  if (api == Api::pthread_create || api == Api::thrd_create) event->object = pthread_self();
}

Start prepare_child(Start* shared) {
  const Start start = *shared;
  shared->taken.store(0);
  if (start.participant != nullptr) await_first_turn(*start.participant);
  name_created(start.creation);
  meet_child(start.birth);
  write_scheduled_number();
  begin_thread_at(start.plan_site, start.site);
  return start;
}

void* run_thread(void* argument) {
  const Start start = prepare_child(static_cast<Start*>(argument));
  return start.routine(start.argument);
}

int run_c11_thread(void* argument) {
  const Start start = prepare_child(static_cast<Start*>(argument));
  return start.c11_routine(start.argument);
}

// A start for a thread that this one creates; nullptr: it will begin without a name.
Start* name_start(const Visit& visit, void* argument) {
  if (!attached()) return nullptr;
  Guard guard;
  if (!guard || !meet_this_thread()) return nullptr;
  Start* start = take_start(visit);
  if (start == nullptr) return nullptr;
  start->birth = name_child();
  start->argument = argument;
  start->participant = nullptr;
  return start;
}

void expect(Start& start) {
  if (!is_controlled()) return;
  if (is_nobody_else_left()) expect_company(arm_accesses());
  start.participant = expect_child();
}

void was_created(const Start& start, const Visit& visit, bool created, const pthread_t* handle) {
  Participant* child = start.participant;
  if (child == nullptr) return;
  if (!created) return child_was_not_created(*child);
  child_was_created(*child, *handle);
  turn_after(visit);
}

}  // namespace

HOOK(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t* attributes, void* (*routine)(void*),
      void* argument)) {
  Visit visit(Api::pthread_create, CALLER);
  Start* start = name_start(visit, argument);
  if (start == nullptr)
    return visit.leave(real::pthread_create(thread, attributes, routine, argument));
  start->routine = routine;
  expect(*start);
  const Start kept = *start;
  const int result = real::pthread_create(thread, attributes, run_thread, start);
  if (result != 0) start->taken.store(0);
  was_created(kept, visit, result == 0, thread);
  return visit.leave(result);
}

HOOK(int, thrd_create, (thrd_t * thread, thrd_start_t routine, void* argument)) {
  Visit visit(Api::thrd_create, CALLER);
  Start* start = name_start(visit, argument);
  if (start == nullptr) return visit.leave(real::thrd_create(thread, routine, argument));
  start->c11_routine = routine;
  expect(*start);
  const Start kept = *start;
  const int result = real::thrd_create(thread, run_c11_thread, start);
  if (result != thrd_success) start->taken.store(0);
  was_created(kept, visit, result == thrd_success, thread);
  return visit.leave(result);
}

PLAIN_HOOK(int, pthread_join, (pthread_t thread, void** result), (thread, result), thread)
PLAIN_HOOK(int, pthread_tryjoin_np, (pthread_t thread, void** result), (thread, result), thread)
PLAIN_HOOK(int, pthread_detach, (pthread_t thread), (thread), thread)
PLAIN_HOOK(int, thrd_join, (thrd_t thread, int* result), (thread, result), thread)
PLAIN_HOOK(int, thrd_detach, (thrd_t thread), (thread), thread)

HOOK(int, pthread_timedjoin_np, (pthread_t thread, void** value, const timespec* deadline)) {
  const Subject subject = until(thread, CLOCK_REALTIME, deadline);
  Visit visit(Api::pthread_timedjoin_np, CALLER, subject);
  Turn turn(visit, subject);
  if (turn.timed_out()) return visit.leave(ETIMEDOUT, true);
  timespec room;
  const int result = real::pthread_timedjoin_np(
      thread, value, absolute_time(visit, CLOCK_REALTIME, deadline, room));
  return visit.leave(result, result == ETIMEDOUT);
}

HOOK(int, pthread_clockjoin_np,
     (pthread_t thread, void** value, clockid_t clock, const timespec* deadline)) {
  const Subject subject = until(thread, clock, deadline);
  Visit visit(Api::pthread_clockjoin_np, CALLER, subject);
  Turn turn(visit, subject);
  if (turn.timed_out()) return visit.leave(ETIMEDOUT, true);
  timespec room;
  const int result =
      real::pthread_clockjoin_np(thread, value, clock, absolute_time(visit, clock, deadline, room));
  return visit.leave(result, result == ETIMEDOUT);
}

HOOK(int, pthread_cancel, (pthread_t thread)) {
  if (passes(Api::pthread_cancel, CALLER)) return real::pthread_cancel(thread);
  Visit visit(Api::pthread_cancel, CALLER, {thread});
  Turn turn(visit, {thread});
  const int result = real::pthread_cancel(thread);
  if (result == 0 && is_controlled()) interrupt_cancelled(thread);
  return visit.leave(result);
}

HOOK(void, pthread_exit, (void* value)) {
  Visit visit(Api::pthread_exit, CALLER);
  { Turn turn(visit, {}); }
  visit.leave(0);
  real::pthread_exit(value);
}

HOOK(void, thrd_exit, (int value)) {
  Visit visit(Api::thrd_exit, CALLER);
  { Turn turn(visit, {}); }
  visit.leave(0);
  real::thrd_exit(value);
}

}  // namespace unflake::agent
