// A reader takes what comes until nothing has come for a while.
#include <poll.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Pipe {
 public:
  Pipe() { BOOST_REQUIRE(::pipe(ends_) == 0); }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void write(const std::string& text) {
    BOOST_REQUIRE(::write(ends_[1], text.data(), text.size()) > 0);
  }

  std::string drain() {
    const timespec patience{0, 220'000'000};
    std::string all;
    pollfd end{ends_[0], POLLIN, 0};
    while (::ppoll(&end, 1, &patience, nullptr) == 1) {  // value
      char piece[64];
      all.append(piece, static_cast<std::size_t>(::read(ends_[0], piece, sizeof piece)));
    }
    return all;
  }

 private:
  int ends_[2];
};

}  // namespace

BOOST_AUTO_TEST_CASE(all_that_was_written_is_drained) {
  Pipe pipe;
  pipe.write("one");
  std::thread writer([&] {
    device_takes(milliseconds(90));
    pipe.write(" two");
  });
  BOOST_TEST(pipe.drain() == "one two");
  writer.join();
}
