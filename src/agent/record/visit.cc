#include "agent/record/visit.h"

#include "agent/process.h"
#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/sites.h"
#include "agent/record/threads.h"
#include "agent/schedule/turns.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {
namespace {

using namespace protocol;

uint32_t number_of_stack_at(const Caller& caller) {
  if ((plan().flags & record_stacks) == 0) return none;
  KnownStack* known = stack_of(caller);
  return known != nullptr ? number_of_stack(*known) : none;
}

int64_t at_most_forever(__int128 ns) {
  return ns < INT64_MAX ? static_cast<int64_t>(ns) : INT64_MAX;
}
int64_t scaled(int64_t ns, int64_t by, int64_t of) {
  return at_most_forever(static_cast<__int128>(ns) * by / of);
}
// What is asked for does not become none, unless the plan says so.
int64_t scaled_by(const Rule& rule, int64_t ns) {
  const __int128 product = static_cast<__int128>(ns) * rule.duration_ns;
  return at_most_forever((product + ns_per_second - 1) / ns_per_second);
}
int64_t add_saturated(int64_t a, int64_t b) {
  return at_most_forever(static_cast<__int128>(a) + b);
}
int64_t span_until(int64_t deadline, int64_t now) {
  return deadline > now ? deadline - now : 0;
}

ChangedWait* changed_wait_at(uint16_t plan_site) {
  for (ChangedWait& wait : this_thread.changed_waits)
    if (wait.given > 0 && wait.plan_site == plan_site) return &wait;
  return nullptr;
}

ChangedWait* room_for_changed_wait() {
  for (ChangedWait& wait : this_thread.changed_waits)
    if (wait.given <= 0) return &wait;
  return &this_thread.changed_waits[this_thread.changed_wait_to_drop++ % changed_waits_at_most];
}

void remember(const ChangedWait& wait) {
  ChangedWait* known = changed_wait_at(wait.plan_site);
  *(known != nullptr ? known : room_for_changed_wait()) = wait;
}

void forget_changed_wait(uint16_t plan_site) {
  if (ChangedWait* known = changed_wait_at(plan_site)) known->given = 0;
}

void take_back(const Visit& visit, pthread_mutex_t* mutex) {
  if (is_controlled())
    lock_again(visit, mutex);
  else
    real::pthread_mutex_lock(mutex);
}

}  // namespace

Visit::Visit(Api api, const Caller& caller, Subject subject) : api_(api) {
  resolve_real_functions();
  start();
  if (!attached()) return;
  const int error = errno;
  if (Guard guard; guard && meet_this_thread()) {
    forget_foreseen(api);
    tally_ = tally_of_call(api, caller);
    if (tally_ != nullptr) enter_site(caller, subject);
  }
  errno = error;
}

void Visit::enter_site(const Caller& caller, const Subject& subject) {
  value_ = subject.value != wrong_time ? subject.value : -1;
  site_ = tally_->site;
  plan_site_ = tally_->plan_site;
  visit_ = count_visit(*tally_, site_);
  if (tally_->mode != static_cast<uint16_t>(Mode::act)) {
    tally_ = nullptr;
    return;
  }
  const Due here = due(Position::before, subject);
  perform(here, site_);
  if (here.any()) flags_ |= event_delayed;
  if (here.time_change() != nullptr) change_time(*here.time_change(), subject);
  if ((plan().flags & record_events) != 0) record_entry(caller, subject);
  entered_ns_ = traced_now();
  if (event_ != nullptr) event_->enter_ns = entered_ns_;
}

Due Visit::due(Position position, const Subject& subject) const {
  if (plan_site_ == no_plan_site) return {};
  const bool has_time = subject.value > 0 || continues(subject);
  return due_at({plan_site_, position, visit_, has_time, subject.value == wrong_time});
}

bool Visit::repeats() const {
  return flags_ == 0 && orders_nothing(static_cast<uint16_t>(api_)) &&
         visit_ >= visits_that_matter();
}

void Visit::record_entry(const Caller& caller, const Subject& subject) {
  event_ = next_event(repeats() ? Worth::repeats : Worth::matters);
  if (event_ == nullptr) return;
  const uint8_t flags = flags_ | event_unfinished;
  *event_ = {.enter_ns = traced_now(),
             .object = subject.object,
             .value = value_,
             .site = site_,
             .stack = number_of_stack_at(caller),
             .api = static_cast<uint16_t>(api_),
             .flags = flags};
}

void Visit::leave_site(int32_t result, bool timed_out, pthread_mutex_t* woken_with) {
  const int error = errno;
  if (Guard guard; guard) {
    const uint64_t now = traced_now();
    count_wait(*tally_, site_, now - entered_ns_);
    const Due here = due(Position::after);
    if (here.any()) flags_ |= event_delayed;
    if (timed_out) flags_ |= event_timed_out;
    if (timed_out && time_rule_ != nullptr) forget_changed_wait(plan_site_);
    if (event_ != nullptr && event_->enter_ns == entered_ns_) {  // else others have taken its room
      event_->exit_ns = now;
      event_->result = result;
      event_->flags = flags_;
      if (flags_ != 0 || now - entered_ns_ > short_wait_ns) keep_event(*event_);
    }
    if (here.any() && woken_with != nullptr) real::pthread_mutex_unlock(woken_with);
    perform(here, site_);
    if (here.any() && woken_with != nullptr) take_back(*this, woken_with);
  }
  errno = error;
}

void Visit::change_time(const Rule& rule, const Subject& subject) {
  flags_ |= event_replaced;
  time_rule_ = &rule;
  if (continues(subject)) {
    const ChangedWait& wait = *changed_wait_at(plan_site_);
    other_deadline_ = wait.is_span ? -1 : wait.other;
    other_time_ = wait.is_span ? wait.other : span_until(wait.other, subject.now);
    return;
  }
  other_time_ = rule.action == Action::scale_time ? scaled_by(rule, value_)
                                                  : static_cast<int64_t>(rule.duration_ns);
  if (subject.deadline < 0) return;
  other_deadline_ = add_saturated(subject.now, other_time_);
  remember({subject.deadline, other_deadline_, plan_site_, false});
}

bool Visit::continues(const Subject& subject) const {
  const ChangedWait* wait = changed_wait_at(plan_site_);
  return wait != nullptr && wait->given == (wait->is_span ? subject.value : subject.deadline);
}

int64_t Visit::changed(int64_t span) const {
  if (time_rule_ == nullptr || span <= 0) return span;
  if (time_rule_->action == Action::scale_time) return scaled_by(*time_rule_, span);
  const int64_t difference = span > value_ ? span - value_ : value_ - span;
  return difference <= value_ / 100 ? other_time_ : span;
}

int64_t Visit::rest_to_tell(int64_t rest, int64_t grain) const {
  if (time_rule_ == nullptr || rest <= 0 || other_time_ <= 0 || value_ <= 0) return rest;
  const int64_t told = scaled(rest, value_, other_time_) / grain * grain;
  Guard guard;
  if (guard && told > 0) remember({told, rest, plan_site_, true});
  if (guard && told == 0) forget_changed_wait(plan_site_);
  return told;
}

void begin_thread_at(uint16_t plan_site, uint32_t site) {
  Guard guard;
  if (!guard || plan_site == no_plan_site) return;
  perform(due_at({plan_site, Position::start, 0}), site);
}

namespace {

// How much a thread can compute before a look can no longer be about the wait. Not by the wall
// clock: on a busy machine the thread may not run for long.
constexpr uint64_t longest_ns = 1'000'000;

// Deadlines of the program may be finer than what the wait was given.
constexpr int64_t margin_ns = 1000;

// The library's own clocks are compiled, even where the library is linked into the program.
bool is_library_clock(const void* caller) {
  if (is_cxx_runtime(caller)) return true;
  const auto address = reinterpret_cast<uint64_t>(caller);
  const LoadedImage* image = image_at(address);
  return image != nullptr && image == executable_image() &&
         owner_of(address, image) != CodeOwner::project;
}

// The thread may be late: the plan's deadline can have passed since the wait was over.
int64_t to_tell(const ForeseenLooks& looks, int64_t now) {
  const bool is_past = now >= looks.given_ns;
  const bool should_be = looks.timed_out || (is_past && now >= looks.changed_ns);
  if (is_past == should_be) return now;
  return should_be ? looks.given_ns + margin_ns : looks.given_ns - margin_ns;
}

}  // namespace

void foresee_looks(clockid_t clock, int64_t given, int64_t changed, bool timed_out, uint8_t count) {
  this_thread.looks = {given, changed, now_ns(CLOCK_THREAD_CPUTIME_ID) + longest_ns,
                       clock, count,   timed_out};
}

void tell_foreseen(const void* caller, clockid_t clock, timespec* time) {
  ForeseenLooks& looks = this_thread.looks;
  const bool is_meant = clock == looks.clock && is_library_clock(caller) &&
                        now_ns(CLOCK_THREAD_CPUTIME_ID) <= looks.until_cpu_ns;
  looks.count = is_meant ? looks.count - 1 : 0;
  if (is_meant) *time = to_timespec(to_tell(looks, to_ns(*time)));
}

}  // namespace unflake::agent
