// A backend with a base latency and a tail of slow answers.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <random>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

microseconds latency() {
  const double tail = std::exponential_distribution<>(1.0 / 1500)(chance());
  return milliseconds(60) + microseconds(static_cast<int64_t>(tail));
}

class Backend {
 public:
  Backend()
      : thread_([this] {
          device_takes(latency());
          answered_ = true;
        }) {}
  ~Backend() { thread_.join(); }

  bool has_answered() const { return answered_; }

 private:
  std::atomic<bool> answered_{false};
  std::thread thread_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_backend_answers) {
  const Backend backend;
  std::this_thread::sleep_for(milliseconds(220));  // value
  BOOST_TEST(backend.has_answered());
}
