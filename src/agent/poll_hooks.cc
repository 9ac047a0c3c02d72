#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "agent/real.h"
#include "agent/signals.h"
#include "agent/times.h"
#include "agent/visit.h"

namespace unflake::agent {

using protocol::Api;

namespace {

uint64_t first_descriptor(const pollfd* descriptors, nfds_t count) {
  return count > 0 && descriptors != nullptr ? word(descriptors[0].fd) : 0;
}

// select() takes more microseconds than a second has.
int64_t within_select(const timeval* time) {
  if (time == nullptr) return -1;
  if (time->tv_sec < 0 || time->tv_usec < 0) return wrong_time;
  return to_ns({time->tv_sec, time->tv_usec * 1000});
}

int ms_to_pass(const Visit& visit, int given) {
  return visit.other_time() < 0 ? given : to_ms(visit.other_time());
}

}  // namespace

HOOK(int, poll, (pollfd * descriptors, nfds_t count, int time)) {
  Visit visit(Api::poll, CALLER, {first_descriptor(descriptors, count), within_ms(time)});
  const int result = real::poll(descriptors, count, ms_to_pass(visit, time));
  return visit.leave(result, result == 0);
}

// What _FORTIFY_SOURCE makes of poll.
HOOK(int, __poll_chk, (pollfd * descriptors, nfds_t count, int time, size_t size)) {
  Visit visit(Api::poll, CALLER, {first_descriptor(descriptors, count), within_ms(time)});
  const int result = real::__poll_chk(descriptors, count, ms_to_pass(visit, time), size);
  return visit.leave(result, result == 0);
}

HOOK(int, ppoll, (pollfd * descriptors, nfds_t count, const timespec* time, const sigset_t* mask)) {
  Visit visit(Api::ppoll, CALLER, {first_descriptor(descriptors, count), within(time)});
  timespec room;
  sigset_t signals;
  const int result = real::ppoll(descriptors, count, relative_time(visit, time, room),
                                 filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

HOOK(int, __ppoll_chk,
     (pollfd * descriptors, nfds_t count, const timespec* time, const sigset_t* mask,
      size_t size)) {
  Visit visit(Api::ppoll, CALLER, {first_descriptor(descriptors, count), within(time)});
  timespec room;
  sigset_t signals;
  const int result = real::__ppoll_chk(descriptors, count, relative_time(visit, time, room),
                                       filter_mask(mask, &signals), size);
  return visit.leave(result, result == 0);
}

// Linux writes the rest of the time into the caller's variable.
HOOK(int, select, (int count, fd_set* readable, fd_set* writable, fd_set* special, timeval* time)) {
  Visit visit(Api::select, CALLER, {word(count), within_select(time)});
  if (visit.other_time() < 0) {
    const int result = real::select(count, readable, writable, special, time);
    return visit.leave(result, result == 0);
  }
  timeval other = to_timeval(visit.other_time());
  const int result = real::select(count, readable, writable, special, &other);
  if (time != nullptr) *time = to_timeval(visit.rest_to_tell(within(&other), 1000));
  return visit.leave(result, result == 0);
}

HOOK(int, pselect,
     (int count, fd_set* readable, fd_set* writable, fd_set* special, const timespec* time,
      const sigset_t* mask)) {
  Visit visit(Api::pselect, CALLER, {word(count), within(time)});
  timespec room;
  sigset_t signals;
  const int result = real::pselect(count, readable, writable, special,
                                   relative_time(visit, time, room), filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

HOOK(int, epoll_wait, (int epoll, epoll_event* events, int most, int time)) {
  Visit visit(Api::epoll_wait, CALLER, {word(epoll), within_ms(time)});
  const int result = real::epoll_wait(epoll, events, most, ms_to_pass(visit, time));
  return visit.leave(result, result == 0);
}

HOOK(int, epoll_pwait, (int epoll, epoll_event* events, int most, int time, const sigset_t* mask)) {
  Visit visit(Api::epoll_pwait, CALLER, {word(epoll), within_ms(time)});
  sigset_t signals;
  const int result =
      real::epoll_pwait(epoll, events, most, ms_to_pass(visit, time), filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

HOOK(int, epoll_pwait2,
     (int epoll, epoll_event* events, int most, const timespec* time, const sigset_t* mask)) {
  Visit visit(Api::epoll_pwait2, CALLER, {word(epoll), within(time)});
  timespec room;
  sigset_t signals;
  const int result = real::epoll_pwait2(epoll, events, most, relative_time(visit, time, room),
                                        filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

PLAIN_HOOK(int, epoll_ctl, (int epoll, int action, int descriptor, epoll_event* event),
           (epoll, action, descriptor, event), word(epoll), descriptor)

}  // namespace unflake::agent
