#include "run/interrupts.h"

#include <sys/signalfd.h>

#include <csignal>

namespace unflake {
namespace {

// A blocked signal is queued even when it is ignored, and `nohup` means it.
bool is_ignored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    if (!is_ignored(signal)) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Interrupts::~Interrupts() {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<Interrupt> Interrupts::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGUSR1) return Interrupt::status;
  if (stop_signal_ == 0) stop_signal_ = signal;
  return Interrupt::stop;
}

}  // namespace unflake
