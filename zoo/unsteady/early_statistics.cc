// A worker answers first and counts afterwards; who has the answer asks for the count at once.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "support/chance.h"

namespace {

class Echo {
 public:
  explicit Echo(int socket) : thread_([this, socket] { serve(socket); }) {}
  ~Echo() { thread_.join(); }

  int answered() const { return answered_; }  // barrier

 private:
  void serve(int socket) {
    for (char byte = 0; ::read(socket, &byte, 1) == 1;) {
      if (::write(socket, &byte, 1) != 1) return;
      checksum_ = compute(compute(compute(checksum_ + byte)));
      answered_ += 1;  // critical
    }
  }

  unsigned checksum_ = 0;
  std::atomic<int> answered_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("an echo is counted") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  Echo echo(ends[1]);
  char byte = 'x';
  const bool echoed = ::write(ends[0], &byte, 1) == 1 && ::read(ends[0], &byte, 1) == 1;
  // The next poll of the statistics comes at any time within its period of 6 ms.
  ::usleep(draw(6'000));
  const int answered = echo.answered();
  ::close(ends[0]);
  CHECK(echoed);
  CHECK(answered == 1);  // fails here
}
