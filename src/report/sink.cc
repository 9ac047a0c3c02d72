#include "report/sink.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace unflake {
namespace {

// A terminal that another process has made non-blocking is still only slow, not broken.
void wait_until_writable(int fd) {
  pollfd slow{fd, POLLOUT, 0};
  ::poll(&slow, 1, -1);
}

}  // namespace

void FdSink::write(std::string_view bytes) {
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<size_t>(written));
    else if (errno == EAGAIN)
      wait_until_writable(fd_);
    else if (errno != EINTR)
      error_ = errno;
  }
}

}  // namespace unflake
