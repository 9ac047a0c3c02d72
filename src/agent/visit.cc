#include "agent/visit.h"

#include "agent/clock.h"
#include "agent/memory.h"
#include "agent/real.h"
#include "agent/recorder.h"
#include "agent/sites.h"
#include "agent/stacks.h"
#include "agent/start.h"
#include "agent/threads.h"

namespace unflake::agent {
namespace {

using namespace protocol;

uint32_t number_of_stack_at(const Caller& caller) {
  if ((plan().flags & record_stacks) == 0) return none;
  KnownStack* known = stack_of(caller);
  return known != nullptr ? number_of_stack(*known) : none;
}

}  // namespace

Visit::Visit(Api api, const Caller& caller, Subject subject) : api_(api) {
  resolve_real_functions();
  start();
  if (!attached()) return;
  const int error = errno;
  if (Guard guard; guard && meet_this_thread()) {
    tally_ = tally_of_call(api, caller);
    if (tally_ != nullptr) enter_site(caller, subject);
  }
  errno = error;
}

void Visit::enter_site(const Caller& caller, const Subject& subject) {
  value_ = subject.value;
  site_ = tally_->site;
  plan_site_ = tally_->plan_site;
  visit_ = count_visit(*tally_, site_);
  if (tally_->mode == static_cast<uint16_t>(Mode::pass)) {
    tally_ = nullptr;
    return;
  }
  const Due due = plan_site_ != no_plan_site ? due_at(moment(Position::before)) : Due{};
  perform(due, site_);
  if (due.any()) flags_ |= event_delayed;
  if (due.replace != nullptr) {
    flags_ |= event_replaced;
    other_time_ = static_cast<int64_t>(due.replace->duration_ns);
  }
  if ((plan().flags & record_events) != 0) record_entry(caller, subject);
  entered_ns_ = now_ns();
  if (event_ != nullptr) event_->enter_ns = entered_ns_;
}

void Visit::record_entry(const Caller& caller, const Subject& subject) {
  event_ = next_event();
  if (event_ == nullptr) return;
  const uint8_t flags = flags_ | event_unfinished;
  *event_ = {.enter_ns = now_ns(),
             .object = subject.object,
             .value = subject.value,
             .site = site_,
             .stack = number_of_stack_at(caller),
             .api = static_cast<uint16_t>(api_),
             .flags = flags};
}

void Visit::leave_site(int32_t result, bool timed_out, pthread_mutex_t* woken_with) {
  const int error = errno;
  if (Guard guard; guard) {
    const uint64_t now = now_ns();
    count_wait(*tally_, site_, now - entered_ns_);
    const Due due = plan_site_ != no_plan_site ? due_at(moment(Position::after)) : Due{};
    if (due.any()) flags_ |= event_delayed;
    if (timed_out) flags_ |= event_timed_out;
    if (timed_out && other_time_ >= 0) skip_time(now);
    if (event_ != nullptr && event_->enter_ns == entered_ns_) {  // else others have taken its room
      event_->exit_ns = now;
      event_->result = result;
      event_->flags = flags_;
    }
    if (due.any() && woken_with != nullptr) real::pthread_mutex_unlock(woken_with);
    perform(due, site_);
    if (due.any() && woken_with != nullptr) real::pthread_mutex_lock(woken_with);
  }
  errno = error;
}

void Visit::skip_time(uint64_t now) {
  const uint64_t waited = now - entered_ns_;
  const uint64_t asked = static_cast<uint64_t>(value_);
  if (value_ < 0 || asked <= waited) return;
  this_thread.skipped_ns = asked - waited;
  this_thread.skipped_until_ns = now + 1'000'000;
}

void begin_thread_at(uint16_t plan_site, uint32_t site) {
  Guard guard;
  if (!guard || plan_site == no_plan_site) return;
  perform(due_at({plan_site, Position::start, 0}), site);
}

}  // namespace unflake::agent
