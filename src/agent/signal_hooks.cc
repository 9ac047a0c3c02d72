#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "agent/real.h"
#include "agent/signals.h"

// The functions by which a program could block SIGTRAP or take it away, or register a handler that
// would see the agent's copies of instructions. Without probes and fatal signals to capture they
// only pass the call on.
namespace unflake::agent {
namespace {

using Handler = void (*)(int);

sigset_t interrupting;  // signals for which siginterrupt() has switched restarting off

Handler set_handler(int signal, Handler handler, int flags) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  if ((flags & SA_NODEFER) == 0) sigaddset(&action.sa_mask, signal);
  return change_action(signal, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

Handler set_restarting_handler(int signal, Handler handler) {
  return set_handler(signal, handler, sigismember(&interrupting, signal) == 1 ? 0 : SA_RESTART);
}

Handler set_passing_handler(int signal, Handler handler) {
  return set_handler(signal, handler, SA_RESETHAND | SA_NODEFER);
}

int without_trap(int mask) {
  return trap_is_taken() ? mask & ~(1 << (SIGTRAP - 1)) : mask;
}

// System V's way: the handler SIG_HOLD blocks the signal, any other unblocks it.
Handler set_and_unblock(int signal, Handler handler) {
  sigset_t only, before;
  sigemptyset(&only);
  if (sigaddset(&only, signal) != 0) return SIG_ERR;
  const bool hold = handler == SIG_HOLD;
  struct sigaction old {};
  if (change_action(signal, nullptr, &old) != 0) return SIG_ERR;
  if (!hold && set_handler(signal, handler, 0) == SIG_ERR) return SIG_ERR;
  sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &only, &before);
  return sigismember(&before, signal) == 1 ? SIG_HOLD : old.sa_handler;
}

}  // namespace

UNFLAKE_DEFINE(int, sigaction,
               (int signal, const struct sigaction* action, struct sigaction* old)) {
  resolve_real_functions();
  return change_action(signal, action, old);
}

HOOK(Handler, signal, (int signal, Handler handler)) {
  resolve_real_functions();
  return handlers_are_wrapped() ? set_restarting_handler(signal, handler)
                                : real::signal(signal, handler);
}
HOOK(Handler, bsd_signal, (int signal, Handler handler)) {
  resolve_real_functions();
  return handlers_are_wrapped() ? set_restarting_handler(signal, handler)
                                : real::bsd_signal(signal, handler);
}
HOOK(Handler, ssignal, (int signal, Handler handler)) {
  resolve_real_functions();
  return handlers_are_wrapped() ? set_restarting_handler(signal, handler)
                                : real::ssignal(signal, handler);
}
HOOK(Handler, sysv_signal, (int signal, Handler handler)) {
  resolve_real_functions();
  return handlers_are_wrapped() ? set_passing_handler(signal, handler)
                                : real::sysv_signal(signal, handler);
}
HOOK(Handler, __sysv_signal, (int signal, Handler handler)) {
  resolve_real_functions();
  return handlers_are_wrapped() ? set_passing_handler(signal, handler)
                                : real::__sysv_signal(signal, handler);
}
HOOK(Handler, sigset, (int signal, Handler handler)) {
  resolve_real_functions();
  return handlers_are_wrapped() ? set_and_unblock(signal, handler) : real::sigset(signal, handler);
}
HOOK(int, siginterrupt, (int signal, int interrupt)) {
  resolve_real_functions();
  if (interrupt != 0)
    sigaddset(&interrupting, signal);
  else
    sigdelset(&interrupting, signal);
  return real::siginterrupt(signal, interrupt);
}
HOOK(int, sigignore, (int signal)) {
  resolve_real_functions();
  const bool trap = trap_is_taken() && signal == SIGTRAP;
  if (!trap) return real::sigignore(signal);
  return set_handler(signal, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

HOOK(int, sigprocmask, (int how, const sigset_t* mask, sigset_t* old)) {
  resolve_real_functions();
  sigset_t filtered;
  return real::sigprocmask(how, filter_mask(mask, &filtered), old);
}
HOOK(int, pthread_sigmask, (int how, const sigset_t* mask, sigset_t* old)) {
  resolve_real_functions();
  sigset_t filtered;
  return real::pthread_sigmask(how, filter_mask(mask, &filtered), old);
}
HOOK(int, pthread_attr_setsigmask_np, (pthread_attr_t * attributes, const sigset_t* mask)) {
  resolve_real_functions();
  sigset_t filtered;
  return real::pthread_attr_setsigmask_np(attributes, filter_mask(mask, &filtered));
}
HOOK(int, sighold, (int signal)) {
  resolve_real_functions();
  return trap_is_taken() && signal == SIGTRAP ? 0 : real::sighold(signal);
}
HOOK(int, sigblock, (int mask)) {
  resolve_real_functions();
  return real::sigblock(without_trap(mask));
}
HOOK(int, sigsetmask, (int mask)) {
  resolve_real_functions();
  return real::sigsetmask(without_trap(mask));
}

}  // namespace unflake::agent
