#include <signal.h>
#include <time.h>

#include "agent/real.h"
#include "agent/signals.h"
#include "protocol/agent_protocol.h"

// What a timer calls in a thread of its own, which libc starts with every signal blocked: a probe
// there would be the end of the process.
namespace unflake::agent {
namespace {

struct Notification {
  protocol::Shared<uint32_t> state;  // 0 free, 1 being written, 2 complete
  void (*function)(sigval);
  sigval value;
};

// Never free again, as a deleted timer may still be about to call. Timers of the same kind share.
constexpr size_t notifications_at_most = 1024;
Notification notifications[notifications_at_most];

void notify(sigval argument) {
  const auto& notification = *static_cast<const Notification*>(argument.sival_ptr);
  unblock_trap();
  notification.function(notification.value);
}

bool is_about(const Notification& notification, const sigevent& event) {
  return notification.state.load() == 2 && notification.function == event.sigev_notify_function &&
         notification.value.sival_ptr == event.sigev_value.sival_ptr;
}

Notification* find_or_add(const sigevent& event) {
  for (Notification& notification : notifications) {
    if (is_about(notification, event)) return &notification;
    if (!notification.state.change(0, 1)) continue;
    notification.function = event.sigev_notify_function;
    notification.value = event.sigev_value;
    notification.state.store(2);
    return &notification;
  }
  return nullptr;
}

}  // namespace

HOOK(int, timer_create, (clockid_t clock, sigevent* event, timer_t* timer)) {
  resolve_real_functions();
  const bool calls = event != nullptr && event->sigev_notify == SIGEV_THREAD;
  Notification* notification = trap_is_taken() && calls ? find_or_add(*event) : nullptr;
  if (notification == nullptr) return real::timer_create(clock, event, timer);
  sigevent other = *event;
  other.sigev_notify_function = notify;
  other.sigev_value.sival_ptr = notification;
  return real::timer_create(clock, &other, timer);
}

}  // namespace unflake::agent
