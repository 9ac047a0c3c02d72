#include "run/crash_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace unflake {
namespace {

void drain(int fd) {
  std::array<char, 256> bytes;
  while (::read(fd, bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace

CrashWatch::Pipe CrashWatch::make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void CrashWatch::load(Environment& environment, const std::string& library) const {
  if (library.empty() || !notices_.write_end || !answers_.read_end) return;
  const std::string others = environment.value("LD_PRELOAD").value_or("");
  environment.apply({"LD_PRELOAD", others.empty() ? library : library + ":" + others});
  const pid_t self = ::getpid();
  environment.apply({protocol::crash_variable,
                     fmt::format("{}:/proc/{}/fd/{}:/proc/{}/fd/{}", self, self,
                                 notices_.write_end.get(), self, answers_.read_end.get())});
}

std::optional<protocol::CrashNotice> CrashWatch::read() const {
  protocol::CrashNotice notice{};
  if (::read(fd(), &notice, sizeof notice) != ssize_t{sizeof notice}) return std::nullopt;
  return notice;
}

void CrashWatch::let_die() const {
  const char answer = 1;
  (void)!::write(answers_.write_end.get(), &answer, 1);
}

void CrashWatch::forget() const {
  if (!notices_.read_end || !answers_.read_end) return;
  drain(notices_.read_end.get());
  drain(answers_.read_end.get());
}

}  // namespace unflake
