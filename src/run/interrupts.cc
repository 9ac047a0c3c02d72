#include "run/interrupts.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <csignal>
#include <initializer_list>

namespace unflake {
namespace {

// A blocked signal is queued even when it is ignored, and `nohup` means it.
bool is_ignored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals)
    if (!is_ignored(signal)) ::sigaddset(&set, signal);
  return set;
}

sigset_t stop_signals() {
  return set_of({SIGINT, SIGTERM, SIGHUP});
}

sigset_t watched_signals() {
  return set_of({SIGINT, SIGTERM, SIGHUP, SIGUSR1});
}

UniqueFd either(int one, int other) {
  UniqueFd both(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {one, other}) {
    epoll_event readable{};
    readable.events = EPOLLIN;
    ::epoll_ctl(both.get(), EPOLL_CTL_ADD, fd, &readable);
  }
  return both;
}

int watchers = 0;  // signals stay blocked as long as there is one

}  // namespace

Interrupts::Interrupts() {
  ++watchers;
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  const sigset_t stop = stop_signals();
  stop_signals_.reset(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_seen_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_fd_ = either(stop_signals_.get(), stop_seen_.get());
}

Interrupts::~Interrupts() {
  if (--watchers > 0) return;
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<Interrupt> Interrupts::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGUSR1) return Interrupt::status;
  if (stop_signal_ == 0) stop_signal_ = signal;
  ::eventfd_write(stop_seen_.get(), 1);
  return Interrupt::stop;
}

}  // namespace unflake
