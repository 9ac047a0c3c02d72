#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "agent/record/threads.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// A thread at a site, before or after its action there.
struct Moment {
  uint16_t plan_site;
  protocol::Position position;
  uint64_t visit;         // of this thread at this site, from 0
  bool has_time = false;  // the call was given one that is not zero
  bool has_wrong_time = false;
};

// Whether rules other than a change of the time value are due. Counts this visit for all of them,
// so ask once.
struct Due {
  uint64_t delay_ns = 0;
  const protocol::Rule* hold = nullptr;
  const protocol::Rule* delay = nullptr;
  const protocol::Rule* replace = nullptr;
  const protocol::Rule* scale = nullptr;
  const protocol::Rule* time_change() const { return replace != nullptr ? replace : scale; }
  bool any() const { return hold != nullptr || delay != nullptr; }
};
Due due_at(const Moment& moment);

// The end of main, or exit(): before any handler or destructor of the program runs. Once in a
// process.
void visit_exit();
// The same of a thread that ends; whoever waits for that goes on.
void visit_thread_end();
// Whether the plan has to do with it.
bool plans_exit();

// Whether what a hold waits for has happened; or that, or never will.
bool has_matched(const protocol::Rule& hold);
bool is_over(const protocol::Rule& hold);

// Makes the thread late, and records that it did. In a controlled run that takes virtual time.
void perform(const Due& due, uint32_t site);

// A time that the call refuses. It is not a time to record or change.
inline constexpr int64_t wrong_time = INT64_MIN;

// What a hooked call is about.
struct Subject {
  uint64_t object = 0;  // mutex, condition variable, descriptor, thread ...
  int64_t value = -1;   // the time asked for in ns, or bytes; -1: none
  // For a wait until a fixed time: that time and the time of the visit, on the call's own clock.
  int64_t deadline = -1;
  int64_t now = 0;
};

// The long way through a hook, around the real call: what the plan wants before and after it, and
// the event. Keeps errno as the call left it.
class Visit {
 public:
  Visit(protocol::Api api, const Caller& caller, Subject subject = {});
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // The time value to pass instead of the one that was given; -1: none.
  int64_t other_time() const { return other_time_; }
  int64_t other_deadline() const { return other_deadline_; }

  // What the plan makes of another span that the same call was given.
  int64_t changed(int64_t span) const;

  // The rest of an interrupted wait in the program's own measure, a multiple of `grain`.
  int64_t rest_to_tell(int64_t rest, int64_t grain = 1) const;

  protocol::Api api() const { return api_; }
  protocol::Event* event() const { return event_; }
  uint16_t plan_site() const { return plan_site_; }
  uint32_t site() const { return site_; }

  // To be called with the result of the real call, whatever it is. On the woken side of a wait the
  // mutex is released while the plan makes the thread late.
  template <class T>
  T leave(T result, bool timed_out = false, pthread_mutex_t* woken_with = nullptr) {
    if (tally_ != nullptr) leave_site(static_cast<int32_t>(result), timed_out, woken_with);
    return result;
  }

 private:
  void enter_site(const Caller& caller, const Subject& subject);
  void record_entry(const Caller& caller, const Subject& subject);
  void change_time(const protocol::Rule& rule, const Subject& subject);
  bool continues(const Subject& subject) const;
  bool repeats() const;
  void leave_site(int32_t result, bool timed_out, pthread_mutex_t* woken_with);
  Due due(protocol::Position position, const Subject& subject = {}) const;

  const protocol::Api api_;
  uint16_t plan_site_ = 0xffff;
  uint32_t site_ = protocol::none;
  protocol::Tally* tally_ = nullptr;  // nullptr: the call passes untouched
  protocol::Event* event_ = nullptr;
  uint64_t visit_ = 0;
  uint64_t entered_ns_ = 0;
  int64_t value_ = -1;
  int64_t other_time_ = -1;
  int64_t other_deadline_ = -1;
  const protocol::Rule* time_rule_ = nullptr;
  uint8_t flags_ = 0;
};

// The child side of a thread's creation at this site.
void begin_thread_at(uint16_t plan_site, uint32_t site);

// The C++ library does not trust what a wait returns: right afterwards it looks at its clock and
// compares that with the deadline that it knows. When the plan has changed the time of the wait,
// these looks see what they would have seen with that time; nobody else's do.
//
// To be called when the wait is over, with the program's deadline and the plan's on `clock`.
void foresee_looks(clockid_t clock, int64_t given, int64_t changed, bool timed_out, uint8_t count);

// At the next look of this thread, when looks are foreseen.
void tell_foreseen(const void* caller, clockid_t clock, timespec* time);

// Any call but a look of the library means that none will come.
inline void forget_foreseen(protocol::Api api) {
  if (this_thread.looks.count != 0 && api != protocol::Api::clock_gettime &&
      api != protocol::Api::sched_yield)
    this_thread.looks.count = 0;
}

}  // namespace unflake::agent
