// libunflake-crash.so: lets a supervisor see where a process of a plain run crashes. It must cost
// nothing that can be measured as long as nothing crashes, and the program may have its own idea of
// every function of libc: so it hooks nothing and calls nothing but the kernel.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>

#include "agent/raw.h"
#include "protocol/crash_protocol.h"

// As libc's, with its debug information: by it unwinders get from the handler to what the signal
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
using unflake::agent::as_word;
using unflake::agent::failed;
using unflake::agent::raw_syscall;

constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
constexpr long kernel_mask_size = 8;

struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

long supervisor;
char notices[64];
char answers[64];
bool told;
alignas(16) char signal_stack[32 * 1024];  // the main thread's own may be what has run out

long open_file(const char* path, int flags) {
  return raw_syscall(__NR_openat, AT_FDCWD, as_word(path), flags | O_CLOEXEC);
}

void wait_for_answer() {
  const long file = open_file(answers, O_RDONLY);
  if (failed(file)) return;
  pollfd watched{static_cast<int>(file), POLLIN, 0};
  raw_syscall(__NR_poll, as_word(&watched), 1, crash_milliseconds_to_answer);
  char answer;
  if ((watched.revents & POLLIN) != 0) raw_syscall(__NR_read, file, as_word(&answer), 1);
}

void tell(bool was_sent) {
  const long file = open_file(notices, O_WRONLY | O_NONBLOCK);
  if (failed(file)) return;
  const CrashNotice notice{static_cast<int32_t>(raw_syscall(__NR_getpid)),
                           static_cast<int32_t>(raw_syscall(__NR_gettid)), was_sent};
  const long written = raw_syscall(__NR_write, file, as_word(&notice), sizeof notice);
  raw_syscall(__NR_close, file);
  if (written == sizeof notice) wait_for_answer();
}

// A forked child, of a death test for example, has another parent and is nobody's business.
bool is_the_test() {
  return raw_syscall(__NR_getppid) == supervisor;
}

long change_action(int signal, const KernelAction* action, KernelAction* before) {
  return raw_syscall(__NR_rt_sigaction, signal, as_word(action), as_word(before), kernel_mask_size);
}

// With the default action again, the signal comes back: by the same instruction, or sent once more.
void die_of(int signal, const siginfo_t& info) {
  constexpr KernelAction by_default{};
  change_action(signal, &by_default, nullptr);
  const bool comes_back = info.si_code > 0 && signal != SIGSYS && signal != SIGTRAP;
  if (!comes_back)
    raw_syscall(__NR_tgkill, raw_syscall(__NR_getpid), raw_syscall(__NR_gettid), signal);
}

void on_fatal_signal(int signal, siginfo_t* info, void*) {
  if (is_the_test()) {
    // Whoever crashes beside the first one waits for it to end the process.
    while (__atomic_exchange_n(&told, true, __ATOMIC_ACQ_REL)) raw_syscall(__NR_pause);
    tell(info->si_code <= 0);
  }
  die_of(signal, *info);
}

void watch(int signal) {
  constexpr unsigned long has_restorer = 0x04000000;
  const KernelAction action{on_fatal_signal, SA_SIGINFO | SA_ONSTACK | has_restorer,
                            unflake_return_from_crash, 0};
  KernelAction before{};
  change_action(signal, &action, &before);
  if (before.handler != nullptr) change_action(signal, &before, nullptr);  // it is ignored
}

// What follows the prefix, or null.
char* behind(char* text, const char* prefix) {
  for (; *prefix != '\0'; ++text, ++prefix)
    if (*text != *prefix) return nullptr;
  return text;
}

const char* copy_until_colon(const char* from, char* to, size_t room) {
  size_t size = 0;
  for (; *from != '\0' && *from != ':' && size + 1 < room; ++from) to[size++] = *from;
  to[size] = '\0';
  return *from == ':' ? from + 1 : from;
}

void read_variable(const char* value) {
  for (supervisor = 0; *value >= '0' && *value <= '9'; ++value)
    supervisor = supervisor * 10 + (*value - '0');
  if (*value == ':') ++value;
  value = copy_until_colon(value, notices, sizeof notices);
  copy_until_colon(value, answers, sizeof answers);
}

// Takes this library out of "one:this:other"; true when nothing else is in it.
bool leave_preloads(char* list) {
  char* entry = list;
  for (char* at = list; *at != '\0'; ++at) {
    if (*at == ':' || *at == ' ') entry = at + 1;
    char* end = behind(at, crash_file_name);
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
    char* variable = behind(*entry, crash_variable);
    char* preloads = behind(*entry, "LD_PRELOAD=");
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
}

}  // namespace
