// One thread, one loop, and a time-out that the loop's own work can outlast.
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class EventLoop {
 public:
  void post(std::function<void()> task) { tasks_.push_back(std::move(task)); }

  void set_timer(milliseconds after, std::function<void()> ring) {
    timer_ = Timer{steady_clock::now() + after, std::move(ring)};
  }
  void cancel_timer() { timer_.reset(); }

  void run() {
    while (timer_ || !tasks_.empty()) {
      ring_if_due();
      if (tasks_.empty()) continue;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

 private:
  struct Timer {
    steady_clock::time_point due;
    std::function<void()> ring;
  };

  void ring_if_due() {
    if (!timer_ || steady_clock::now() < timer_->due) return;
    const Timer due = std::move(*timer_);
    timer_.reset();
    due.ring();
  }

  std::deque<std::function<void()>> tasks_;
  std::optional<Timer> timer_;
};

class Request {
 public:
  explicit Request(EventLoop& loop) : loop_(loop) {
    loop_.set_timer(milliseconds(60), [this] { finish("timed out"); });  // barrier
    loop_.post([this] { connect(); });
  }
  const std::string& result() const { return result_; }

 private:
  void connect() {
    loop_.post([this] { send(); });
  }
  void send() {
    loop_.post([this] { finish("200 OK"); });  // critical
  }
  void finish(std::string result) {
    loop_.cancel_timer();
    if (result_.empty()) result_ = std::move(result);
  }

  EventLoop& loop_;
  std::string result_;
};

}  // namespace

TEST_CASE("a request is answered in time") {
  EventLoop loop;
  Request request(loop);
  loop.run();
  CHECK(request.result() == "200 OK");  // fails here
}
