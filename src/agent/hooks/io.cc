#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/hooks/hooks.h"
#include "agent/hooks/time_values.h"
#include "agent/real.h"
#include "agent/record/visit.h"
#include "agent/schedule/peers.h"

namespace unflake::agent {

using protocol::Api;

namespace {

int64_t bytes(size_t size) {
  return static_cast<int64_t>(size);
}

// open() has its third argument only when it may make a file.
bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

mode_t mode_of(int flags, va_list arguments) {
  return has_mode(flags) ? static_cast<mode_t>(va_arg(arguments, unsigned)) : 0;
}

bool ended_by_time(int received, unsigned wanted, const timespec* left) {
  return received > 0 && static_cast<unsigned>(received) < wanted && left != nullptr &&
         to_ns(*left) == 0;
}

int would_block() {
  errno = EAGAIN;
  return -1;
}

// The time-outs of the two directions are two things: reads know the plain descriptor.
uint64_t timed_direction(int socket, int option) {
  return word(socket) | (option == SO_SNDTIMEO ? uint64_t{1} << 32 : 0);
}

}  // namespace

// Calls that may end with the time-out of their socket.
#define WAITING_HOOK(type, name, parameters, arguments, ...)       \
  HOOK(type, name, parameters) {                                   \
    if (passes(Api::name, CALLER)) return real::name arguments;    \
    Visit visit(Api::name, CALLER, Subject{__VA_ARGS__});          \
    Turn turn(visit, Subject{__VA_ARGS__});                        \
    if (turn.timed_out()) return visit.leave(would_block(), true); \
    return visit.leave(real::name arguments);                      \
  }

// The same for calls whose flags may say that they do not wait.
#define FLAGGED_HOOK(type, name, parameters, arguments, ...)       \
  HOOK(type, name, parameters) {                                   \
    if (passes(Api::name, CALLER)) return real::name arguments;    \
    Visit visit(Api::name, CALLER, Subject{__VA_ARGS__});          \
    Turn turn(visit, Subject{__VA_ARGS__}, flags);                 \
    if (turn.timed_out()) return visit.leave(would_block(), true); \
    return visit.leave(real::name arguments);                      \
  }

// Calls after which it is known who is at an end of a socket.
#define NAMING_HOOK(name, parameters, arguments, ...)           \
  HOOK(int, name, parameters) {                                 \
    if (passes(Api::name, CALLER)) return real::name arguments; \
    Visit visit(Api::name, CALLER, Subject{word(socket)});      \
    Turn turn(visit, Subject{word(socket)});                    \
    const int result = real::name arguments;                    \
    note_names(__VA_ARGS__);                                    \
    return visit.leave(result);                                 \
  }

#define ACCEPT_HOOK(name, parameters, arguments)                   \
  HOOK(int, name, parameters) {                                    \
    if (passes(Api::name, CALLER)) return real::name arguments;    \
    Visit visit(Api::name, CALLER, Subject{word(socket)});         \
    Turn turn(visit, Subject{word(socket)});                       \
    if (turn.timed_out()) return visit.leave(would_block(), true); \
    const int accepted = real::name arguments;                     \
    if (accepted >= 0) note_names(accepted);                       \
    return visit.leave(accepted);                                  \
  }

NAMING_HOOK(connect, (int socket, const sockaddr* peer, socklen_t size), (socket, peer, size),
            socket, peer, size)
ACCEPT_HOOK(accept, (int socket, sockaddr* peer, socklen_t* size), (socket, peer, size))
ACCEPT_HOOK(accept4, (int socket, sockaddr* peer, socklen_t* size, int flags),
            (socket, peer, size, flags))
NAMING_HOOK(bind, (int socket, const sockaddr* own, socklen_t size), (socket, own, size), socket)
NAMING_HOOK(listen, (int socket, int backlog), (socket, backlog), socket)
PLAIN_HOOK(int, shutdown, (int socket, int how), (socket, how), word(socket))
FLAGGED_HOOK(ssize_t, send, (int socket, const void* data, size_t size, int flags),
             (socket, data, size, flags), word(socket), bytes(size))
FLAGGED_HOOK(ssize_t, sendto,
             (int socket, const void* data, size_t size, int flags, const sockaddr* peer,
              socklen_t peer_size),
             (socket, data, size, flags, peer, peer_size), word(socket), bytes(size))
FLAGGED_HOOK(ssize_t, sendmsg, (int socket, const msghdr* message, int flags),
             (socket, message, flags), word(socket))
FLAGGED_HOOK(int, sendmmsg, (int socket, mmsghdr* messages, unsigned count, int flags),
             (socket, messages, count, flags), word(socket))
FLAGGED_HOOK(ssize_t, recv, (int socket, void* room, size_t size, int flags),
             (socket, room, size, flags), word(socket), bytes(size))
FLAGGED_HOOK(ssize_t, recvfrom,
             (int socket, void* room, size_t size, int flags, sockaddr* peer, socklen_t* peer_size),
             (socket, room, size, flags, peer, peer_size), word(socket), bytes(size))
FLAGGED_HOOK(ssize_t, recvmsg, (int socket, msghdr* message, int flags), (socket, message, flags),
             word(socket))

WAITING_HOOK(ssize_t, read, (int file, void* room, size_t size), (file, room, size), word(file),
             bytes(size))
WAITING_HOOK(ssize_t, write, (int file, const void* data, size_t size), (file, data, size),
             word(file), bytes(size))
WAITING_HOOK(ssize_t, readv, (int file, const iovec* parts, int count), (file, parts, count),
             word(file))
WAITING_HOOK(ssize_t, writev, (int file, const iovec* parts, int count), (file, parts, count),
             word(file))
PLAIN_HOOK(int, close, (int file), (file), word(file))
PLAIN_HOOK(int, eventfd_read, (int file, eventfd_t* value), (file, value), word(file))
PLAIN_HOOK(int, eventfd_write, (int file, eventfd_t value), (file, value), word(file))
PLAIN_HOOK(int, access, (const char* path, int mode), (path, mode), word(path))
PLAIN_HOOK(int, stat, (const char* path, struct stat* status), (path, status), word(path))
PLAIN_HOOK(int, rename, (const char* from, const char* to), (from, to), word(from))
PLAIN_HOOK(int, unlink, (const char* path), (path), word(path))
PLAIN_HOOK(int, mkdir, (const char* path, mode_t mode), (path, mode), word(path))
PLAIN_HOOK(int, fsync, (int file), (file), word(file))
PLAIN_HOOK(int, flock, (int file, int operation), (file, operation), word(file))
PLAIN_HOOK(int, lockf, (int file, int command, off_t size), (file, command, size), word(file))
PLAIN_HOOK(int, semop, (int set, sembuf* operations, size_t count), (set, operations, count),
           word(set))
PLAIN_HOOK(int, msgsnd, (int queue, const void* message, size_t size, int flags),
           (queue, message, size, flags), word(queue), bytes(size))
PLAIN_HOOK(ssize_t, msgrcv, (int queue, void* room, size_t size, long type, int flags),
           (queue, room, size, type, flags), word(queue), bytes(size))
PLAIN_HOOK(int, mq_send, (mqd_t queue, const char* data, size_t size, unsigned priority),
           (queue, data, size, priority), word(queue), bytes(size))
PLAIN_HOOK(ssize_t, mq_receive, (mqd_t queue, char* room, size_t size, unsigned* priority),
           (queue, room, size, priority), word(queue), bytes(size))

// Other names of the same calls: what _FORTIFY_SOURCE and large files make of them.
#define SAME_HOOK(type, name, api, parameters, arguments, ...)     \
  HOOK(type, name, parameters) {                                   \
    if (passes(Api::api, CALLER)) return real::name arguments;     \
    Visit visit(Api::api, CALLER, Subject{__VA_ARGS__});           \
    Turn turn(visit, Subject{__VA_ARGS__});                        \
    if (turn.timed_out()) return visit.leave(would_block(), true); \
    return visit.leave(real::name arguments);                      \
  }

SAME_HOOK(ssize_t, __read_chk, read, (int file, void* room, size_t size, size_t there),
          (file, room, size, there), word(file), bytes(size))
SAME_HOOK(ssize_t, __recv_chk, recv, (int socket, void* room, size_t size, size_t there, int flags),
          (socket, room, size, there, flags), word(socket), bytes(size))
SAME_HOOK(ssize_t, __recvfrom_chk, recvfrom,
          (int socket, void* room, size_t size, size_t there, int flags, sockaddr* peer,
           socklen_t* peer_size),
          (socket, room, size, there, flags, peer, peer_size), word(socket), bytes(size))
SAME_HOOK(int, stat64, stat, (const char* path, struct stat64* status), (path, status), word(path))
SAME_HOOK(int, lockf64, lockf, (int file, int command, off64_t size), (file, command, size),
          word(file))
SAME_HOOK(int, __open_2, open, (const char* path, int flags), (path, flags), word(path))
SAME_HOOK(int, __open64_2, open, (const char* path, int flags), (path, flags), word(path))
SAME_HOOK(int, __openat_2, openat, (int folder, const char* path, int flags), (folder, path, flags),
          word(path))
SAME_HOOK(int, __openat64_2, openat, (int folder, const char* path, int flags),
          (folder, path, flags), word(path))

#define OPEN_HOOK(name)                                                                           \
  HOOK(int, name, (const char* path, int flags, ...)) {                                           \
    va_list arguments;                                                                            \
    va_start(arguments, flags);                                                                   \
    const mode_t mode = mode_of(flags, arguments);                                                \
    va_end(arguments);                                                                            \
    if (passes(Api::open, CALLER)) return real::name(path, flags, mode);                          \
    Visit visit(Api::open, CALLER, {word(path)});                                                 \
    Turn turn(visit, {word(path)});                                                               \
    if (is_controlled() && is_random_device(path)) return visit.leave(open_seeded_device(flags)); \
    return visit.leave(real::name(path, flags, mode));                                            \
  }
#define OPENAT_HOOK(name)                                                                         \
  HOOK(int, name, (int folder, const char* path, int flags, ...)) {                               \
    va_list arguments;                                                                            \
    va_start(arguments, flags);                                                                   \
    const mode_t mode = mode_of(flags, arguments);                                                \
    va_end(arguments);                                                                            \
    if (passes(Api::openat, CALLER)) return real::name(folder, path, flags, mode);                \
    Visit visit(Api::openat, CALLER, {word(path)});                                               \
    Turn turn(visit, {word(path)});                                                               \
    if (is_controlled() && is_random_device(path)) return visit.leave(open_seeded_device(flags)); \
    return visit.leave(real::name(folder, path, flags, mode));                                    \
  }

OPEN_HOOK(open)
OPEN_HOOK(open64)
OPENAT_HOOK(openat)
OPENAT_HOOK(openat64)

HOOK(int, setsockopt, (int socket, int level, int option, const void* value, socklen_t size)) {
  const bool is_time = level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO) &&
                       size == sizeof(timeval) && value != nullptr;
  const int64_t time = is_time ? within(static_cast<const timeval*>(value)) : -1;
  Visit visit(Api::setsockopt, CALLER,
              {is_time ? timed_direction(socket, option) : word(socket), time});
  Turn turn(visit, {word(socket)});
  timeval other;
  if (is_time && time > 0 && visit.other_time() >= 0) {
    other = to_timeval(time_to_arm(visit.other_time()));
    value = &other;
  }
  if (level == SOL_SOCKET && option == SO_REUSEPORT && is_controlled() && value != nullptr &&
      size >= sizeof(int) && *static_cast<const int*>(value) != 0)
    note_unrepeatable("SO_REUSEPORT: the system chooses which listener gets a connection");
  return visit.leave(real::setsockopt(socket, level, option, value, size));
}

// Linux looks at the time only when a message has arrived, and then writes what is left of it.
HOOK(int, recvmmsg, (int socket, mmsghdr* messages, unsigned count, int flags, timespec* time)) {
  Visit visit(Api::recvmmsg, CALLER, {word(socket), within(time)});
  Turn turn(visit, {word(socket)}, flags);
  if (time == nullptr || visit.other_time() < 0) {
    const int result = real::recvmmsg(socket, messages, count, flags, time);
    return visit.leave(result, ended_by_time(result, count, time));
  }
  timespec other = to_timespec(visit.other_time());
  const int result = real::recvmmsg(socket, messages, count, flags, &other);
  if (result > 0) *time = to_timespec(visit.rest_to_tell(to_ns(other)));
  return visit.leave(result, ended_by_time(result, count, &other));
}

HOOK(int, semtimedop, (int set, sembuf* operations, size_t count, const timespec* time)) {
  Visit visit(Api::semtimedop, CALLER, {word(set), within(time)});
  Turn turn(visit, {word(set), within(time)});
  timespec room;
  const int result = real::semtimedop(set, operations, count, relative_time(visit, time, room));
  return visit.leave(result, result != 0 && errno == EAGAIN);
}

HOOK(int, mq_timedsend,
     (mqd_t queue, const char* data, size_t size, unsigned priority, const timespec* deadline)) {
  Visit visit(Api::mq_timedsend, CALLER, until(word(queue), CLOCK_REALTIME, deadline));
  Turn turn(visit, until(word(queue), CLOCK_REALTIME, deadline));
  timespec room;
  const int result = real::mq_timedsend(queue, data, size, priority,
                                        absolute_time(visit, CLOCK_REALTIME, deadline, room));
  return visit.leave(result, result != 0 && errno == ETIMEDOUT);
}

HOOK(ssize_t, mq_timedreceive,
     (mqd_t queue, char* room, size_t size, unsigned* priority, const timespec* deadline)) {
  Visit visit(Api::mq_timedreceive, CALLER, until(word(queue), CLOCK_REALTIME, deadline));
  Turn turn(visit, until(word(queue), CLOCK_REALTIME, deadline));
  timespec other;
  const ssize_t result = real::mq_timedreceive(
      queue, room, size, priority, absolute_time(visit, CLOCK_REALTIME, deadline, other));
  return visit.leave(result, result < 0 && errno == ETIMEDOUT);
}

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

// In a controlled run the waiting is done before the call.
int ms_to_pass(const Visit& visit, int given) {
  if (is_controlled()) return 0;
  return visit.other_time() < 0 ? given : to_ms(visit.other_time());
}
const timespec* time_to_pass(const Visit& visit, const timespec* given, timespec& room) {
  if (!models({0, within(given)})) return relative_time(visit, given, room);
  room = {};
  return &room;
}

// Whether a signal has ended the wait.
bool await(const Visit& visit, pollfd* descriptors, nfds_t count, const Subject& subject) {
  if (!models(subject)) return false;
  const int64_t span = visit.other_time() >= 0 ? visit.other_time() : subject.value;
  const bool interrupted = wait_for_descriptors(visit, descriptors, static_cast<uint32_t>(count),
                                                span, subject.object) == Woken::interrupted;
  if (interrupted) errno = EINTR;
  return interrupted;
}

bool await_epoll(const Visit& visit, int epoll, int64_t span) {
  pollfd watched{epoll, POLLIN, 0};
  return await(visit, &watched, 1, {word(epoll), span});
}

nfds_t as_pollfds(int count, const fd_set* readable, const fd_set* writable, const fd_set* special,
                  pollfd (&all)[FD_SETSIZE]) {
  nfds_t used = 0;
  for (int i = 0; i < count && i < FD_SETSIZE; ++i) {
    short events = 0;
    if (readable != nullptr && FD_ISSET(i, readable)) events |= POLLIN;
    if (writable != nullptr && FD_ISSET(i, writable)) events |= POLLOUT;
    if (special != nullptr && FD_ISSET(i, special)) events |= POLLPRI;
    if (events != 0) all[used++] = {i, events, 0};
  }
  return used;
}

bool await_select(const Visit& visit, int count, const fd_set* readable, const fd_set* writable,
                  const fd_set* special, int64_t span) {
  if (!models({0, span})) return false;
  pollfd all[FD_SETSIZE];
  const nfds_t used = as_pollfds(count, readable, writable, special, all);
  return await(visit, all, used, {used > 0 ? word(all[0].fd) : 0, span});
}

}  // namespace

HOOK(int, poll, (pollfd * descriptors, nfds_t count, int time)) {
  const Subject subject{first_descriptor(descriptors, count), within_ms(time)};
  Visit visit(Api::poll, CALLER, subject);
  if (await(visit, descriptors, count, subject)) return visit.leave(-1);
  const int result = real::poll(descriptors, count, ms_to_pass(visit, time));
  return visit.leave(result, result == 0);
}

// What _FORTIFY_SOURCE makes of poll.
HOOK(int, __poll_chk, (pollfd * descriptors, nfds_t count, int time, size_t size)) {
  const Subject subject{first_descriptor(descriptors, count), within_ms(time)};
  Visit visit(Api::poll, CALLER, subject);
  if (await(visit, descriptors, count, subject)) return visit.leave(-1);
  const int result = real::__poll_chk(descriptors, count, ms_to_pass(visit, time), size);
  return visit.leave(result, result == 0);
}

HOOK(int, ppoll, (pollfd * descriptors, nfds_t count, const timespec* time, const sigset_t* mask)) {
  const Subject subject{first_descriptor(descriptors, count), within(time)};
  Visit visit(Api::ppoll, CALLER, subject);
  if (await(visit, descriptors, count, subject)) return visit.leave(-1);
  timespec room;
  sigset_t signals;
  const int result =
      real::ppoll(descriptors, count, time_to_pass(visit, time, room), filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

HOOK(int, __ppoll_chk,
     (pollfd * descriptors, nfds_t count, const timespec* time, const sigset_t* mask,
      size_t size)) {
  const Subject subject{first_descriptor(descriptors, count), within(time)};
  Visit visit(Api::ppoll, CALLER, subject);
  if (await(visit, descriptors, count, subject)) return visit.leave(-1);
  timespec room;
  sigset_t signals;
  const int result = real::__ppoll_chk(descriptors, count, time_to_pass(visit, time, room),
                                       filter_mask(mask, &signals), size);
  return visit.leave(result, result == 0);
}

// Linux writes the rest of the time into the caller's variable.
HOOK(int, select, (int count, fd_set* readable, fd_set* writable, fd_set* special, timeval* time)) {
  Visit visit(Api::select, CALLER, {word(count), within_select(time)});
  if (models({0, within_select(time)})) {
    const int64_t end = virtual_now() + within_select(time);
    if (await_select(visit, count, readable, writable, special, within_select(time)))
      return visit.leave(-1);
    timeval none{};
    const int result = real::select(count, readable, writable, special, &none);
    const int64_t rest = end - virtual_now();
    if (time != nullptr) *time = to_timeval(rest > 0 ? rest : 0);
    return visit.leave(result, result == 0);
  }
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
  if (await_select(visit, count, readable, writable, special, within(time))) return visit.leave(-1);
  timespec room;
  sigset_t signals;
  const int result = real::pselect(count, readable, writable, special,
                                   time_to_pass(visit, time, room), filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

HOOK(int, epoll_wait, (int epoll, epoll_event* events, int most, int time)) {
  Visit visit(Api::epoll_wait, CALLER, {word(epoll), within_ms(time)});
  if (await_epoll(visit, epoll, within_ms(time))) return visit.leave(-1);
  const int result = real::epoll_wait(epoll, events, most, ms_to_pass(visit, time));
  return visit.leave(result, result == 0);
}

HOOK(int, epoll_pwait, (int epoll, epoll_event* events, int most, int time, const sigset_t* mask)) {
  Visit visit(Api::epoll_pwait, CALLER, {word(epoll), within_ms(time)});
  if (await_epoll(visit, epoll, within_ms(time))) return visit.leave(-1);
  sigset_t signals;
  const int result =
      real::epoll_pwait(epoll, events, most, ms_to_pass(visit, time), filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

HOOK(int, epoll_pwait2,
     (int epoll, epoll_event* events, int most, const timespec* time, const sigset_t* mask)) {
  Visit visit(Api::epoll_pwait2, CALLER, {word(epoll), within(time)});
  if (await_epoll(visit, epoll, within(time))) return visit.leave(-1);
  timespec room;
  sigset_t signals;
  const int result = real::epoll_pwait2(epoll, events, most, time_to_pass(visit, time, room),
                                        filter_mask(mask, &signals));
  return visit.leave(result, result == 0);
}

PLAIN_HOOK(int, epoll_ctl, (int epoll, int action, int descriptor, epoll_event* event),
           (epoll, action, descriptor, event), word(epoll), descriptor)

}  // namespace unflake::agent
