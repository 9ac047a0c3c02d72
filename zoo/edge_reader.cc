// An edge-triggered reader takes one message per edge; two messages can share an edge.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

using std::chrono::milliseconds;

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  int in() const { return ends_[0]; }
  int out() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
};

class TickReader {
 public:
  explicit TickReader(int in) : in_(in), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event readable{.events = EPOLLIN | EPOLLET, .data = {.fd = in}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, in, &readable);
  }
  ~TickReader() { ::close(epoll_); }

  // How many of so many ticks came before it was silent for too long.
  int read_ticks(int wanted) {
    epoll_event event{};
    for (int ticks = 0; ticks < wanted; ++ticks) {
      if (::epoll_wait(epoll_, &event, 1, 150) != 1) return ticks;  // critical
      char tick = 0;
      if (::read(in_, &tick, 1) != 1) return ticks;
    }
    return wanted;
  }

 private:
  int in_;
  int epoll_;
};

void tick(int out) {
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(milliseconds(25));
    if (::write(out, "t", 1) != 1) std::abort();  // barrier
  }
}

}  // namespace

int main() {
  const Pipe pipe;
  TickReader reader(pipe.in());
  std::thread clock([&] { tick(pipe.out()); });
  const int ticks = reader.read_ticks(2);
  clock.join();
  assert(ticks == 2);  // fails here
}
