#pragma once

#include <asm/unistd.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

// System calls as the kernel sees them: no hook, no errno, no cancellation point, fit for a signal
// handler. A result from -4095 to -1 is a negated errno.
namespace unflake::agent {

inline long call_kernel(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

#ifdef UNFLAKE_FAULTS
// A build of the agent for tests, in which they decide what fails.
long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0);
#else
inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  return call_kernel(number, a, b, c, d, e, f);
}
#endif

inline long as_word(const void* pointer) {
  return reinterpret_cast<long>(pointer);
}
inline bool failed(long result) {
  return result < 0 && result >= -4095;
}

// What rt_sigaction takes: not libc's struct of the same purpose.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
inline constexpr unsigned long has_restorer = 0x04000000;
inline constexpr long kernel_mask_size = 8;

inline bool change_kernel_action(int signal, const KernelAction& action,
                                 KernelAction* before = nullptr) {
  return !failed(
      raw_syscall(__NR_rt_sigaction, signal, as_word(&action), as_word(before), kernel_mask_size));
}

// Those that end a process because of what it did. SIGTRAP is another one, but may belong to
// probes.
inline constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};

// For the handler of a signal that should end the process. Sends it again as it was, since the
// instruction need not fault a second time; while it is blocked, it comes when the handler returns.
inline void die_of(int signal, const siginfo_t& info) {
  if (!change_kernel_action(signal, KernelAction{})) __builtin_trap();  // a filter forbids it
  const long process = raw_syscall(__NR_getpid), thread = raw_syscall(__NR_gettid);
  if (failed(raw_syscall(__NR_rt_tgsigqueueinfo, process, thread, signal, as_word(&info))))
    raw_syscall(__NR_tgkill, process, thread, signal);
}

}  // namespace unflake::agent
