#include "report/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>

namespace unflake {
namespace {

// A terminal is ready when it has room for a byte, and makes the writer of two wait. The flag
// O_NONBLOCK would help, and belongs to everybody who shares the open file, the shell among them.
UniqueFd open_again_if_terminal(int fd) {
  if (!::isatty(fd)) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

int poll_through_signals(std::span<pollfd> waiting, int timeout) {
  int ready = 0;
  do ready = ::poll(waiting.data(), waiting.size(), timeout);
  while (ready < 0 && errno == EINTR);
  return ready;
}

}  // namespace

FdSink::FdSink(int fd, int give_up, Duration grace) : fd_(fd), give_up_(give_up), grace_(grace) {
  if (give_up >= 0) terminal_ = open_again_if_terminal(fd);
  if (terminal_) fd_ = terminal_.get();
}

void FdSink::write(std::string_view bytes) {
  while (error_ == 0 && !gave_up_ && !bytes.empty()) {
    gave_up_ = !wait_for_room();
    if (gave_up_) return;
    const std::string_view piece = bytes.substr(0, room());
    const ssize_t written = ::write(fd_, piece.data(), piece.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR && errno != EAGAIN)
      error_ = errno;
  }
}

// Also true when a write would fail at once.
bool FdSink::wait_for_room() const {
  pollfd waiting[] = {{fd_, POLLOUT, 0}, {give_up_, POLLIN, 0}};  // poll() passes over a -1
  poll_through_signals(waiting, -1);
  if (waiting[0].revents != 0) return true;
  const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace_);
  return poll_through_signals({waiting, 1}, static_cast<int>(grace.count())) != 0;
}

// How much a descriptor that is ready takes without making the writer wait.
size_t FdSink::room() const {
  struct stat status {};
  const bool known = ::fstat(fd_, &status) == 0;
  if (terminal_ || give_up_ < 0 || !known || S_ISREG(status.st_mode)) return SIZE_MAX;
  int unread = 0;
  const bool is_empty_pipe =
      S_ISFIFO(status.st_mode) && ::ioctl(fd_, FIONREAD, &unread) == 0 && unread == 0;
  const int capacity = is_empty_pipe ? ::fcntl(fd_, F_GETPIPE_SZ) : 0;
  return static_cast<size_t>(std::max(capacity, PIPE_BUF));
}

}  // namespace unflake
