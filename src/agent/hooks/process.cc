#include <alloca.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/hooks/signal.h"
#include "agent/hooks/time_values.h"
#include "agent/process.h"
#include "agent/real.h"
#include "agent/record/memory.h"
#include "agent/record/visit.h"

namespace unflake::agent {

using protocol::Api;

// The environment with which a started program is followed, in this frame: a child of vfork
// must not touch more than its stack.
#define FOLLOWED(environment)                                                                 \
  follow_environment(environment,                                                             \
                     static_cast<char**>(alloca(followed_size(environment) * sizeof(char*))), \
                     static_cast<char*>(alloca(preload_size)))

// In the child the visit is the parent's.
HOOK(pid_t, fork, ()) {
  Visit visit(Api::fork, CALLER);
  Turn turn(visit, {});
  const pid_t child = real::fork();
  if (child != 0) return visit.leave(child);
  begin_thread_at(visit.plan_site(), visit.site());
  return 0;
}

PLAIN_HOOK(int, system, (const char* command), (command))

namespace {

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

PLAIN_HOOK(int, kill, (pid_t process, int signal), (process, signal), word(process), signal)
PLAIN_HOOK(int, raise, (int signal), (signal), 0, signal)
PLAIN_HOOK(int, pthread_kill, (pthread_t thread, int signal), (thread, signal), thread, signal)
PLAIN_HOOK(int, sigqueue, (pid_t process, int signal, sigval value), (process, signal, value),
           word(process), signal)
PLAIN_HOOK(int, sigwait, (const sigset_t* signals, int* signal), (signals, signal))
PLAIN_HOOK(int, sigwaitinfo, (const sigset_t* signals, siginfo_t* info), (signals, info))
PLAIN_HOOK(int, pause, (), ())

HOOK(int, sigtimedwait, (const sigset_t* signals, siginfo_t* info, const timespec* time)) {
  Visit visit(Api::sigtimedwait, CALLER, {0, within(time)});
  Turn turn(visit, {0, within(time)});
  timespec room;
  const int result = real::sigtimedwait(signals, info, relative_time(visit, time, room));
  return visit.leave(result, result < 0 && errno == EAGAIN);
}

HOOK(int, sigsuspend, (const sigset_t* mask)) {
  Visit visit(Api::sigsuspend, CALLER);
  Turn turn(visit, {});
  sigset_t signals;
  return visit.leave(real::sigsuspend(filter_mask(mask, &signals)));
}

#define SPAWN_HOOK(name)                                                                          \
  HOOK(int, name,                                                                                 \
       (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,               \
        const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment)) { \
    Visit visit(Api::name, CALLER);                                                               \
    Turn turn(visit, {});                                                                         \
    return visit.leave(                                                                           \
        real::name(child, path, actions, attributes, arguments, FOLLOWED(environment)));          \
  }

SPAWN_HOOK(posix_spawn)
SPAWN_HOOK(posix_spawnp)

HOOK(int, execve, (const char* path, char* const* arguments, char* const* environment)) {
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execve(path, arguments, FOLLOWED(environment)));
}

HOOK(int, execvpe, (const char* file, char* const* arguments, char* const* environment)) {
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execvpe(file, arguments, FOLLOWED(environment)));
}

HOOK(int, fexecve, (int file, char* const* arguments, char* const* environment)) {
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::fexecve(file, arguments, FOLLOWED(environment)));
}

HOOK(int, execveat,
     (int folder, const char* path, char* const* arguments, char* const* environment, int flags)) {
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execveat(folder, path, arguments, FOLLOWED(environment), flags));
}

UNFLAKE_DEFINE(int, execv, (const char* path, char* const* arguments)) {
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execve(path, arguments, FOLLOWED(environ)));
}

UNFLAKE_DEFINE(int, execvp, (const char* file, char* const* arguments)) {
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execvpe(file, arguments, FOLLOWED(environ)));
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
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execve(path, words, FOLLOWED(environ)));
}

UNFLAKE_DEFINE(int, execlp, (const char* file, const char* first, ...)) {
  va_list list;
  va_start(list, first);
  GATHER(words, first, list)
  va_end(list);
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execvpe(file, words, FOLLOWED(environ)));
}

UNFLAKE_DEFINE(int, execle, (const char* path, const char* first, ...)) {
  va_list list;
  va_start(list, first);
  GATHER(words, first, list)
  char* const* environment = va_arg(list, char* const*);
  va_end(list);
  Visit visit(Api::execve, CALLER);
  return visit.leave(real::execve(path, words, FOLLOWED(environment)));
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

}  // namespace unflake::agent
