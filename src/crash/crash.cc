// libunflake-crash.so: lets a supervisor see where a process of a plain run crashes. It must cost
// nothing that can be measured as long as nothing crashes, and the program may have its own
// version of every libc function: so it hooks nothing and calls nothing but the kernel.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>

#include "agent/raw.h"
#include "protocol/preload_protocol.h"

// Like libc's, with debug information by which unwinders get from the handler to what the signal
// interrupted. They look for it at the byte before. Each register is in the signal's context, at
// the stack pointer.
asm(R"(
  .pushsection .text
  .macro saved register, offset
    .cfi_escape 0x10, \register, 3, 0x77, (\offset & 0x7f) | 0x80, \offset >> 7
  .endm
  .balign 16
  .cfi_startproc
  .cfi_signal_frame
  .cfi_escape 0x0f, 4, 0x77, (160 & 0x7f) | 0x80, 160 >> 7, 6
  saved 8, 40
  saved 9, 48
  saved 10, 56
  saved 11, 64
  saved 12, 72
  saved 13, 80
  saved 14, 88
  saved 15, 96
  saved 5, 104
  saved 4, 112
  saved 6, 120
  saved 3, 128
  saved 1, 136
  saved 0, 144
  saved 2, 152
  saved 7, 160
  saved 16, 168
  nop
  .type unflake_return_from_crash, @function
unflake_return_from_crash:
  mov $15, %rax
  syscall
  .size unflake_return_from_crash, . - unflake_return_from_crash
  .cfi_endproc
  .popsection
)");
extern "C" __attribute__((visibility("hidden"))) void unflake_return_from_crash();

namespace {

using namespace unflake::protocol;
using namespace unflake::agent;

long supervisor;
char answers[64];
bool told;
alignas(16) char signal_stack[32 * 1024];  // the main thread's own may have overflowed

void wait_for_answer() {
  const long file =
      raw_syscall(__NR_openat, AT_FDCWD, as_word(answers), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (failed(file)) return;
  pollfd watched{static_cast<int>(file), POLLIN, 0};
  raw_syscall(__NR_poll, as_word(&watched), 1, crash_milliseconds_to_answer);
  char answer;
  if ((watched.revents & POLLIN) != 0) raw_syscall(__NR_read, file, as_word(&answer), 1);
}

bool tell(int signal, bool was_sent) {
  const CrashNotice notice{static_cast<int32_t>(raw_syscall(__NR_getpid)),
                           static_cast<int32_t>(raw_syscall(__NR_gettid)), signal, was_sent};
  siginfo_t info{};
  info.si_signo = crash_notice_signal;
  info.si_code = SI_QUEUE;
  info.si_pid = notice.pid;
  info.si_value.sival_ptr = reinterpret_cast<void*>(crash_value(notice));
  return !failed(
      raw_syscall(__NR_rt_sigqueueinfo, supervisor, crash_notice_signal, as_word(&info)));
}

// A forked child, of a death test for example, does not matter. One whose parents are gone has
// the supervisor as its parent too, which lets it die at once.
bool is_child_of_supervisor() {
  return raw_syscall(__NR_getppid) == supervisor;
}

void on_fatal_signal(int signal, siginfo_t* info, void*) {
  if (is_child_of_supervisor()) {
    // Any thread that crashes after the first one waits for it to end the process.
    while (__atomic_exchange_n(&told, true, __ATOMIC_ACQ_REL)) raw_syscall(__NR_pause);
    if (tell(signal, info->si_code <= 0)) wait_for_answer();
  }
  die_of(signal, *info);
}

// No other handler may run on top of this one: it would wait for itself, or end the wait. Only a
// stack that has overflowed needs another one; the program's own may be too small for this.
void watch(int signal) {
  constexpr uint64_t every_signal = ~uint64_t{0};
  const bool may_lack_stack = signal == SIGSEGV || signal == SIGBUS;
  const KernelAction action{on_fatal_signal,
                            SA_SIGINFO | has_restorer | (may_lack_stack ? SA_ONSTACK : 0ul),
                            unflake_return_from_crash, every_signal};
  KernelAction before{};
  change_kernel_action(signal, action, &before);
  if (before.handler != nullptr) change_kernel_action(signal, before);  // it is ignored
}

// What follows the prefix, or null.
char* after_prefix(char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix)
    if (*text != *prefix) return nullptr;
  return text;
}

void read_variable(const char* value) {
  for (supervisor = 0; *value >= '0' && *value <= '9'; ++value)
    supervisor = supervisor * 10 + (*value - '0');
  if (*value == ':') ++value;
  size_t size = 0;
  for (; *value != '\0' && size + 1 < sizeof answers; ++value) answers[size++] = *value;
  answers[size] = '\0';
}

// Removes this library from "one:this:other"; true when nothing else is in it.
bool leave_preloads(char* list) {
  char* entry = list;
  for (char* at = list; *at != '\0'; ++at) {
    if (*at == ':' || *at == ' ') entry = at + 1;
    char* end = after_prefix(at, crash_file_name);
    if (end == nullptr) continue;
    if (*end != '\0')
      ++end;
    else if (entry > list)
      --entry;
    while ((*entry++ = *end++) != '\0') {
    }
    break;
  }
  return *list == '\0';
}

// In place: the environment must look as if this library had never been in it.
void leave_environment(char** entry) {
  while (*entry != nullptr) {
    char* variable = after_prefix(*entry, crash_variable);
    char* preloads = after_prefix(*entry, "LD_PRELOAD=");
    const bool is_ours = variable != nullptr && *variable == '=';
    if (is_ours) read_variable(variable + 1);
    if (!is_ours && (preloads == nullptr || !leave_preloads(preloads))) {
      ++entry;
      continue;
    }
    for (char** rest = entry; *rest != nullptr; ++rest) rest[0] = rest[1];
  }
}

__attribute__((constructor)) void start(int, char**, char** environment) {
  if (environment == nullptr) return;
  leave_environment(environment);
  if (supervisor == 0) return;
  const stack_t stack{signal_stack, 0, sizeof signal_stack};
  raw_syscall(__NR_sigaltstack, as_word(&stack), 0);
  for (const int signal : fatal_signals) watch(signal);
  watch(SIGTRAP);
}

}  // namespace
