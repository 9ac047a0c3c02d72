// A test of how long something takes at least, that also says how long it may take.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Lets one call through every few milliseconds.
class RateLimiter {
 public:
  explicit RateLimiter(milliseconds interval) : interval_(interval) {}

  void acquire() {
    std::this_thread::sleep_until(next_);
    next_ = steady_clock::now() + interval_;
  }

 private:
  milliseconds interval_;
  steady_clock::time_point next_ = steady_clock::now();
};

}  // namespace

TEST_CASE("four calls take three intervals") {
  RateLimiter limiter(milliseconds(5));
  const auto start = steady_clock::now();
  for (int call = 0; call < 4; ++call) limiter.acquire();
  const auto elapsed = steady_clock::now() - start;
  CHECK(elapsed >= milliseconds(15));
  CHECK(elapsed < milliseconds(100));  // fails here
}
