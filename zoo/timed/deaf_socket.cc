// A receiver gives up after a while; by then the keeper must have marked the line as dead.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Line {
 public:
  Line() {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) != 0) std::abort();
    const timeval patience{0, 150'000};
    ::setsockopt(ends_[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);  // value
    keeper_ = std::thread([this] {
      device_takes(milliseconds(55));
      dead_ = true;
    });
  }
  ~Line() {
    keeper_.join();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  bool hears_something() {
    char byte = 0;
    return ::recv(ends_[0], &byte, 1, 0) == 1;
  }
  bool is_dead() const { return dead_; }

 private:
  int ends_[2];
  std::atomic<bool> dead_{false};
  std::thread keeper_;
};

}  // namespace

int main() {
  Line line;
  const bool heard = line.hears_something();
  if (!heard && line.is_dead()) return EXIT_SUCCESS;
  std::fprintf(stderr, "heard: %d, dead: %d\n", heard, line.is_dead());
  return EXIT_FAILURE;
}
