#include "run/crash_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace unflake {

CrashWatch::CrashWatch() {
  sigset_t notice;
  ::sigemptyset(&notice);
  ::sigaddset(&notice, protocol::crash_notice_signal);
  ::sigprocmask(SIG_BLOCK, &notice, nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  answers_.reset(ends[0]);
  answers_here_.reset(ends[1]);
  notices_.reset(::signalfd(-1, &notice, SFD_CLOEXEC | SFD_NONBLOCK));
}

void CrashWatch::load(Environment& environment, const std::string& library) const {
  if (library.empty() || !notices_) return;
  const std::string others = environment.value("LD_PRELOAD").value_or("");
  environment.apply({"LD_PRELOAD", others.empty() ? library : others + ":" + library});
  const pid_t self = ::getpid();
  environment.apply(
      {protocol::crash_variable, fmt::format("{}:/proc/{}/fd/{}", self, self, answers_.get())});
}

std::optional<protocol::CrashNotice> CrashWatch::read() const {
  signalfd_siginfo info{};
  if (::read(fd(), &info, sizeof info) != ssize_t{sizeof info}) return std::nullopt;
  return protocol::crash_notice(static_cast<int32_t>(info.ssi_pid), info.ssi_ptr);
}

void CrashWatch::let_die() const {
  const char answer = 1;
  (void)!::write(answers_here_.get(), &answer, 1);
}

void CrashWatch::forget() const {
  while (read()) {
  }
  std::array<char, 256> answers;
  while (::read(answers_.get(), answers.data(), answers.size()) > 0) {
  }
}

}  // namespace unflake
