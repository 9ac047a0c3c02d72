// A sensor starts to measure before anyone listens; whoever is late misses the first reading.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

struct Reading {
  int number;
  double celsius;
};

class Thermometer {
 public:
  using Listener = std::function<void(const Reading&)>;

  Thermometer() : probe_([this] { measure(); }) {}
  ~Thermometer() { stop(); }

  void subscribe(Listener listener) {
    std::lock_guard lock(mutex_);
    listeners_.push_back(std::move(listener));  // critical
  }

  void stop() {
    if (probe_.joinable()) probe_.join();
  }

 private:
  void measure() {
    std::this_thread::sleep_for(milliseconds(30));  // the probe warms up
    for (int number = 1; number <= 3; ++number) tell({number, 20.0 + number});
  }

  void tell(const Reading& reading) {
    std::lock_guard lock(mutex_);
    for (const Listener& listener : listeners_) listener(reading);  // barrier
  }

  std::mutex mutex_;
  std::vector<Listener> listeners_;
  std::thread probe_;
};

}  // namespace

TEST_CASE("all readings are recorded") {
  Thermometer thermometer;
  std::vector<int> numbers;
  thermometer.subscribe([&](const Reading& reading) { numbers.push_back(reading.number); });
  thermometer.stop();
  CHECK(numbers == std::vector<int>{1, 2, 3});  // fails here
}
