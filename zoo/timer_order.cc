// Two timers with threads of their own; their callbacks come in the order of their times, mostly.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

class Alarm {
 public:
  Alarm(milliseconds after, std::function<void()> ring)
      : thread_([after, ring = std::move(ring)] {
          std::this_thread::sleep_for(after);
          ring();
        }) {}
  ~Alarm() { thread_.join(); }

 private:
  std::thread thread_;
};

class Oven {
 public:
  void preheat() {
    note("warm");  // critical
  }
  void bake() {
    note("bake");  // barrier
  }
  const std::vector<std::string>& log() const { return log_; }

 private:
  void note(std::string step) {
    std::lock_guard lock(mutex_);
    log_.push_back(std::move(step));
  }

  std::mutex mutex_;
  std::vector<std::string> log_;
};

}  // namespace

TEST_CASE("the oven is warm before it bakes") {
  Oven oven;
  {
    Alarm warm(milliseconds(5), [&] { oven.preheat(); });
    Alarm bake(milliseconds(40), [&] { oven.bake(); });
  }
  CHECK(oven.log() == std::vector<std::string>{"warm", "bake"});  // fails here
}
