// An event loop whose next event is always there long before its time-out.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

class Loop {
 public:
  Loop() {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &wanted);
  }
  ~Loop() {
    ::close(epoll_);
    ::close(event_);
  }

  void post() { ::eventfd_write(event_, 1); }

  bool run_once() {
    epoll_event happened{};
    return ::epoll_wait(epoll_, &happened, 1, 300) == 1;  // value
  }

 private:
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  int event_ = ::eventfd(0, EFD_CLOEXEC);
};

}  // namespace

TEST_CASE("a posted event is handled") {
  Loop loop;
  std::thread poster([&] {
    device_takes(milliseconds(30));
    loop.post();
  });
  CHECK(loop.run_once());
  poster.join();
}
