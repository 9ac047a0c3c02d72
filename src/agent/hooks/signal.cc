#include "agent/hooks/hooks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "agent/probes/probes.h"
#include "agent/raw.h"
#include "agent/real.h"
#include "agent/record/sites.h"
#include "agent/schedule/scheduler.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

UNFLAKE_REAL(int, sigaction, (int, const struct sigaction*, struct sigaction*), nullptr)

namespace {

constexpr int signal_count = 65;

using InfoHandler = decltype(KernelAction::handler);

// What the program asked for. For SIGTRAP all of it, as the system never sees that.
struct ProgramAction {
  InfoHandler handler;
  int flags;
};

bool wrapping = false;
bool trap_taken = false;
ProgramAction actions[signal_count];
struct sigaction trap_action;

// Unwinders recognise a signal's frame by these instructions, and look for a function at the byte
// before them: there must be none.
asm(R"(
  .pushsection .text
  .balign 16
  nop
  .type unflake_return_from_signal, @function
unflake_return_from_signal:
  mov $15, %rax
  syscall
  .size unflake_return_from_signal, . - unflake_return_from_signal
  .popsection
)");
extern "C" void unflake_return_from_signal();

bool is_fatal(int signal) {
  for (const int fatal : fatal_signals)
    if (signal == fatal) return true;
  return false;
}

bool was_sent(const siginfo_t& info) {
  return info.si_code <= 0;
}

// The program's handlers are called from here. Some never return: they jump or throw.
void call_handler(int signal, siginfo_t* info, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  if (signal == SIGSEGV && info->si_code == SI_KERNEL && read_time_stamp(context)) return;
  const Displacement displacement = translate(context);
  const InfoHandler handler = __atomic_load_n(&actions[signal].handler, __ATOMIC_ACQUIRE);
  if (is_fatal(signal)) capture_signal(signal, info->si_addr, context, handler != nullptr);
  if (handler != nullptr) {
    const InterruptedTurn interrupted = begin_handler();
    handler(signal, info, context);
    end_handler(interrupted, was_sent_in_turn(*info));
  } else {
    die_of(signal, *info);
  }
  restore(displacement, context);
}

bool is_handler(const struct sigaction& action) {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

int change_trap_action(const struct sigaction* action, struct sigaction* old) {
  const struct sigaction before = trap_action;
  if (action != nullptr) trap_action = *action;
  if (old != nullptr) *old = before;
  return 0;
}

struct sigaction wrapped(int signal, const struct sigaction& action) {
  struct sigaction wrapper = action;
  if (trap_taken) sigdelset(&wrapper.sa_mask, SIGTRAP);
  if (time_stamps_are_taken()) sigdelset(&wrapper.sa_mask, SIGSEGV);
  const bool is_needed = captures_failures() || (signal == SIGSEGV && time_stamps_are_taken());
  const bool dies = is_fatal(signal) && action.sa_handler == SIG_DFL && is_needed;
  if (!is_handler(action) && !dies) return wrapper;
  __atomic_store_n(&actions[signal].handler, action.sa_sigaction, __ATOMIC_RELEASE);
  actions[signal].flags = action.sa_flags;
  wrapper.sa_sigaction = call_handler;
  wrapper.sa_flags |= SA_SIGINFO;
  if (dies) wrapper.sa_flags |= SA_ONSTACK;  // the stack may be what has run out
  return wrapper;
}

// The action as the program gave it, when the system still has the wrapper instead.
void unwrap(const ProgramAction& action, struct sigaction& old) {
  if (old.sa_sigaction != call_handler) return;
  old.sa_sigaction = action.handler;
  old.sa_flags = action.flags;
}

// Of the initial thread, the one that usually runs out of stack.
void have_signal_stack() {
  alignas(16) static char room[64 * 1024];
  stack_t stack;
  if (failed(raw_syscall(__NR_sigaltstack, 0, as_word(&stack)))) return;
  if ((stack.ss_flags & SS_DISABLE) == 0) return;
  stack.ss_sp = room;
  stack.ss_size = sizeof room;
  stack.ss_flags = 0;
  raw_syscall(__NR_sigaltstack, as_word(&stack), 0);
}

void take_existing_handlers() {
  for (int signal = 1; signal < signal_count; ++signal) {
    struct sigaction action;
    if (signal == SIGTRAP || real::sigaction(signal, nullptr, &action) != 0) continue;
    if (is_handler(action) && action.sa_sigaction != call_handler)
      change_action(signal, &action, nullptr);
  }
}

}  // namespace

void watch_fatal_signals() {
  if (real::sigaction == nullptr) return;
  wrapping = true;
  have_signal_stack();
  for (const int signal : fatal_signals) {
    struct sigaction action;
    if (real::sigaction(signal, nullptr, &action) == 0) change_action(signal, &action, nullptr);
  }
}

bool take_trap(TrapHandler on_trap) {
  if (real::sigaction == nullptr || real::sigaction(SIGTRAP, nullptr, &trap_action) != 0)
    return false;
  const KernelAction action = {on_trap, SA_SIGINFO | SA_NODEFER | SA_RESTART | has_restorer,
                               unflake_return_from_signal, 0};
  if (!change_kernel_action(SIGTRAP, action) || !unblock_trap()) return false;
  wrapping = true;
  trap_taken = true;
  take_existing_handlers();
  return true;
}

bool unblock_trap() {
  const uint64_t trap = uint64_t{1} << (SIGTRAP - 1);
  return !failed(
      raw_syscall(__NR_rt_sigprocmask, SIG_UNBLOCK, as_word(&trap), 0, kernel_mask_size));
}

bool handlers_are_wrapped() {
  return wrapping;
}

bool trap_is_taken() {
  return trap_taken;
}

const sigset_t* filter_mask(const sigset_t* mask, sigset_t* copy) {
  const bool takes_faults = time_stamps_are_taken();
  if ((!trap_taken && !takes_faults) || mask == nullptr) return mask;
  *copy = *mask;
  if (trap_taken) sigdelset(copy, SIGTRAP);
  if (takes_faults) sigdelset(copy, SIGSEGV);
  return copy;
}

int change_action(int signal, const struct sigaction* action, struct sigaction* old) {
  if (!wrapping || signal <= 0 || signal >= signal_count)
    return real::sigaction(signal, action, old);
  if (signal == SIGTRAP && trap_taken) return change_trap_action(action, old);
  const ProgramAction before = actions[signal];
  struct sigaction wrapper;
  if (action != nullptr) wrapper = wrapped(signal, *action);
  const int result = real::sigaction(signal, action != nullptr ? &wrapper : nullptr, old);
  if (result == 0 && old != nullptr) unwrap(before, *old);
  return result;
}

void give_trap_to_program(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = trap_action;
  if (action.sa_handler == SIG_IGN && was_sent(*info)) return;
  if (!is_handler(action)) return die_of(SIGTRAP, *info);
  if ((action.sa_flags & SA_RESETHAND) != 0) trap_action.sa_handler = SIG_DFL;
  uint64_t blocked;
  __builtin_memcpy(&blocked, &action.sa_mask, sizeof blocked);
  blocked &= ~(uint64_t{1} << (SIGTRAP - 1));
  raw_syscall(__NR_rt_sigprocmask, SIG_BLOCK, as_word(&blocked), 0, kernel_mask_size);
  const Displacement displacement = translate(static_cast<ucontext_t*>(context));
  action.sa_sigaction(signal, info, context);
  restore(displacement, static_cast<ucontext_t*>(context));
}

// The functions by which a program could block SIGTRAP or take it away, or register a handler that
// would see the agent's copies of instructions. Without probes and fatal signals to capture they
// only pass the call on.
namespace {

using Handler = void (*)(int);

sigset_t interrupting;  // signals for which siginterrupt() has turned off restarting

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

// System V style: the handler SIG_HOLD blocks the signal, any other unblocks it.
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
