#include <alloca.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/hooks/hooks.h"
#include "agent/hooks/time_values.h"
#include "agent/process.h"
#include "agent/real.h"
#include "agent/record/memory.h"
#include "agent/record/visit.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

using protocol::Api;

// The environment with which a started program is followed, in this frame: a child of vfork
// must not touch more than its stack.
#define FOLLOWED(environment)                                                                 \
  follow_environment(environment,                                                             \
                     static_cast<char**>(alloca(followed_size(environment) * sizeof(char*))), \
                     static_cast<char*>(alloca(preload_size)))

namespace {

// In a controlled run: it takes turns with the others from now on.
void was_started(const Visit& visit, Participant* expected, pid_t child) {
  if (expected == nullptr) return;
  if (child <= 0) return process_was_not_created(*expected);
  process_was_created(*expected, child);
  turn_after(visit);
}

}  // namespace

// In the child the visit is the parent's.
HOOK(pid_t, fork, ()) {
  Visit visit(Api::fork, CALLER);
  Turn turn(visit, {});
  Participant* expected = is_controlled() ? expect_fork() : nullptr;
  const pid_t child = real::fork();
  if (child != 0) {
    was_started(visit, expected, child);
    return visit.leave(child);
  }
  begin_thread_at(visit.plan_site(), visit.site());
  return 0;
}

namespace {

struct StartingProgram {
  StartingProgram() { leave_time_stamps(true); }
  ~StartingProgram() { leave_time_stamps(false); }
};

}  // namespace

// The C library's own threads, which it starts here, block the signal that the fault would be.
HOOK(int, getaddrinfo_a, (int mode, gaicb** list, int count, sigevent* event)) {
  resolve_real_functions();
  const StartingProgram starting;
  return real::getaddrinfo_a(mode, list, count, event);
}

HOOK(int, system, (const char* command)) {
  Visit visit(Api::system, CALLER);
  const StartingProgram starting;
  Turn turn(visit, {});
  return visit.leave(real::system(command));
}

HOOK(FILE*, popen, (const char* command, const char* mode)) {
  resolve_real_functions();
  const StartingProgram starting;
  return real::popen(command, mode);
}

namespace {

// 0: not known.
pid_t tid_of(pthread_t thread) {
  const Participant* found = is_controlled() ? participant_of(thread) : nullptr;
  return found != nullptr ? static_cast<pid_t>(found->tid.load()) : 0;
}

// In a controlled run: until there is news of a child.
void await_child(const Visit& visit, int type, int id, int options) {
  if (is_controlled() && (options & WNOHANG) == 0) wait_for_child(visit, type, id, options);
}

// As waitpid() names children.
void await_child(const Visit& visit, pid_t child, int options) {
  const int type = child > 0 ? P_PID : child == -1 ? P_ALL : P_PGID;
  await_child(visit, type, child > 0 ? child : child < -1 ? -child : 0, options | WEXITED);
}

}  // namespace

#define WAIT_HOOK(type, name, parameters, arguments, object, ...) \
  HOOK(type, name, parameters) {                                  \
    if (passes(Api::name, CALLER)) return real::name arguments;   \
    Visit visit(Api::name, CALLER, Subject{object});              \
    await_child(visit, __VA_ARGS__);                              \
    return visit.leave(real::name arguments);                     \
  }

WAIT_HOOK(pid_t, wait, (int* status), (status), 0, -1, 0)
WAIT_HOOK(pid_t, waitpid, (pid_t child, int* status, int options), (child, status, options),
          word(child), child, options)
WAIT_HOOK(int, waitid, (idtype_t type, id_t id, siginfo_t* info, int options),
          (type, id, info, options), id, type, static_cast<int>(id), options)
WAIT_HOOK(pid_t, wait3, (int* status, int options, rusage* usage), (status, options, usage), 0, -1,
          options)
WAIT_HOOK(pid_t, wait4, (pid_t child, int* status, int options, rusage* usage),
          (child, status, options, usage), word(child), child, options)

// In a controlled run the sender waits until the signal is there.
#define SIGNAL_HOOK(name, parameters, arguments, object, process, tid)                  \
  HOOK(int, name, parameters) {                                                         \
    if (passes(Api::name, CALLER)) return real::name arguments;                         \
    Visit visit(Api::name, CALLER, Subject{object, signal});                            \
    Turn turn(visit, Subject{object, signal});                                          \
    const pid_t tid_before = tid;                                                       \
    const int result = real::name arguments;                                            \
    if (result == 0 && is_controlled()) let_signal_arrive(process, tid_before, signal); \
    return visit.leave(result);                                                         \
  }

SIGNAL_HOOK(kill, (pid_t process, int signal), (process, signal), word(process), process, 0)
SIGNAL_HOOK(pthread_kill, (pthread_t thread, int signal), (thread, signal), thread, ::getpid(),
            tid_of(thread))
SIGNAL_HOOK(sigqueue, (pid_t process, int signal, sigval value), (process, signal, value),
            word(process), process, 0)
PLAIN_HOOK(int, raise, (int signal), (signal), 0, signal)

namespace {

// In a controlled run: the real call finds a signal, or a time of 0.
bool await_signal(const Visit& visit, const sigset_t* signals, int64_t span) {
  if (!is_controlled() || signals == nullptr) return true;
  return wait_for_signal(visit, *signals, span) != Woken::interrupted;
}

int fail_with(int error) {
  errno = error;
  return -1;
}

}  // namespace

HOOK(int, sigwait, (const sigset_t* signals, int* signal)) {
  if (passes(Api::sigwait, CALLER)) return real::sigwait(signals, signal);
  Visit visit(Api::sigwait, CALLER);
  while (!await_signal(visit, signals, -1)) continue;
  return visit.leave(real::sigwait(signals, signal));
}

HOOK(int, sigwaitinfo, (const sigset_t* signals, siginfo_t* info)) {
  if (passes(Api::sigwaitinfo, CALLER)) return real::sigwaitinfo(signals, info);
  Visit visit(Api::sigwaitinfo, CALLER);
  if (!await_signal(visit, signals, -1)) return visit.leave(fail_with(EINTR));
  return visit.leave(real::sigwaitinfo(signals, info));
}

HOOK(int, pause, ()) {
  if (passes(Api::pause, CALLER)) return real::pause();
  Visit visit(Api::pause, CALLER);
  if (!is_controlled()) return visit.leave(real::pause());
  wait_for_handler(visit, nullptr);
  return visit.leave(fail_with(EINTR));
}

HOOK(int, sigtimedwait, (const sigset_t* signals, siginfo_t* info, const timespec* time)) {
  Visit visit(Api::sigtimedwait, CALLER, {0, within(time)});
  if (models({0, within(time)})) {
    if (!await_signal(visit, signals, within(time))) return visit.leave(fail_with(EINTR));
    const timespec at_once{};
    const int found = real::sigtimedwait(signals, info, &at_once);
    return visit.leave(found, found < 0 && errno == EAGAIN);
  }
  timespec room;
  const int result = real::sigtimedwait(signals, info, relative_time(visit, time, room));
  return visit.leave(result, result < 0 && errno == EAGAIN);
}

HOOK(int, sigsuspend, (const sigset_t* mask)) {
  Visit visit(Api::sigsuspend, CALLER);
  sigset_t signals;
  if (is_controlled() && mask != nullptr) {
    wait_for_handler(visit, filter_mask(mask, &signals));
    return visit.leave(fail_with(EINTR));
  }
  return visit.leave(real::sigsuspend(filter_mask(mask, &signals)));
}

#define SPAWN_HOOK(name)                                                                          \
  HOOK(int, name,                                                                                 \
       (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,               \
        const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment)) { \
    Visit visit(Api::name, CALLER);                                                               \
    Turn turn(visit, {});                                                                         \
    Participant* expected = is_controlled() ? expect_program(arguments) : nullptr;                \
    const StartingProgram starting;                                                               \
    pid_t started = 0;                                                                            \
    const int result =                                                                            \
        real::name(&started, path, actions, attributes, arguments, FOLLOWED(environment));        \
    if (result == 0 && child != nullptr) *child = started;                                        \
    was_started(visit, expected, result == 0 ? started : -1);                                     \
    return visit.leave(result);                                                                   \
  }

SPAWN_HOOK(posix_spawn)
SPAWN_HOOK(posix_spawnp)

namespace {

// Comes back when there is no such program.
template <class Exec>
int exec_in_turn(Visit& visit, char* const* arguments, Exec exec) {
  const StartingProgram starting;
  if (is_controlled()) become_program(arguments);
  const int result = exec();
  if (is_controlled()) stay_program();
  return visit.leave(result);
}

}  // namespace

#define EXEC(arguments, environment, call)       \
  Visit visit(Api::execve, CALLER);              \
  char* const* followed = FOLLOWED(environment); \
  return exec_in_turn(visit, arguments, [&] { return call; })

HOOK(int, execve, (const char* path, char* const* arguments, char* const* environment)) {
  EXEC(arguments, environment, real::execve(path, arguments, followed));
}

HOOK(int, execvpe, (const char* file, char* const* arguments, char* const* environment)) {
  EXEC(arguments, environment, real::execvpe(file, arguments, followed));
}

HOOK(int, fexecve, (int file, char* const* arguments, char* const* environment)) {
  EXEC(arguments, environment, real::fexecve(file, arguments, followed));
}

HOOK(int, execveat,
     (int folder, const char* path, char* const* arguments, char* const* environment, int flags)) {
  EXEC(arguments, environment, real::execveat(folder, path, arguments, followed, flags));
}

UNFLAKE_DEFINE(int, execv, (const char* path, char* const* arguments)) {
  EXEC(arguments, environ, real::execve(path, arguments, followed));
}

UNFLAKE_DEFINE(int, execvp, (const char* file, char* const* arguments)) {
  EXEC(arguments, environ, real::execvpe(file, arguments, followed));
}

namespace {

size_t count_words(va_list words) {
  size_t count = 1;
  while (va_arg(words, char*) != nullptr) ++count;
  return count;
}

}  // namespace

// The arguments of execl and the like, as an array in this frame; `list` is left after the null.
#define GATHER(words, first, list)                                         \
  va_list counting;                                                        \
  va_copy(counting, list);                                                 \
  const size_t count = count_words(counting);                              \
  va_end(counting);                                                        \
  char** words = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  words[0] = const_cast<char*>(first);                                     \
  for (size_t i = 1; i <= count; ++i) words[i] = va_arg(list, char*);

UNFLAKE_DEFINE(int, execl, (const char* path, const char* first, ...)) {
  va_list list;
  va_start(list, first);
  GATHER(words, first, list)
  va_end(list);
  EXEC(words, environ, real::execve(path, words, followed));
}

UNFLAKE_DEFINE(int, execlp, (const char* file, const char* first, ...)) {
  va_list list;
  va_start(list, first);
  GATHER(words, first, list)
  va_end(list);
  EXEC(words, environ, real::execvpe(file, words, followed));
}

UNFLAKE_DEFINE(int, execle, (const char* path, const char* first, ...)) {
  va_list list;
  va_start(list, first);
  GATHER(words, first, list)
  char* const* environment = va_arg(list, char* const*);
  va_end(list);
  EXEC(words, environment, real::execve(path, words, followed));
}

// At the end of main and here another thread may still go first.
HOOK(void, exit, (int status)) {
  resolve_real_functions();
  visit_exit();
  turn_before_exit();
  real::exit(status);
}

// It destroys nothing, so nothing is lost by holding it here.
HOOK(void, quick_exit, (int status)) {
  resolve_real_functions();
  hold_exit();
  real::quick_exit(status);
}

HOOK(void, _exit, (int status)) {
  resolve_real_functions();
  end_turns_of_process();
  real::_exit(status);
}

HOOK(void, _Exit, (int status)) {
  resolve_real_functions();
  end_turns_of_process();
  real::_Exit(status);
}

}  // namespace unflake::agent
