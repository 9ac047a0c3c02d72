// A test robot types an address through the user interface's event queue, and confirms in time,
// as it believes.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

// All widgets live in this thread; others post events to it.
class UiThread {
 public:
  UiThread() : thread_([this] { dispatch(); }) {}
  ~UiThread() {
    post(nullptr);
    thread_.join();
  }

  void post(std::function<void()> event) {
    {
      std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    posted_.notify_one();
  }

 private:
  void dispatch() {
    while (const auto event = next()) event();
  }

  std::function<void()> next() {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [this] { return !events_.empty(); });
    auto event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> events_;
  std::thread thread_;
};

struct Form {
  std::string address;
  std::vector<std::string> feeds;
};

// Presses one key after the other, like a person would.
void type(UiThread& ui, Form& form, const std::string& text) {
  for (const char key : text) {
    std::this_thread::sleep_for(milliseconds(1));
    ui.post([&form, key] { form.address += key; });  // critical
  }
}

}  // namespace

TEST_CASE("a feed is added") {
  Form form;
  {
    UiThread ui;
    std::thread keyboard([&] { type(ui, form, "pod.example"); });
    std::this_thread::sleep_for(milliseconds(80));
    ui.post([&] { form.feeds.push_back(form.address); });  // barrier
    keyboard.join();
  }
  CHECK(form.feeds == std::vector<std::string>{"pod.example"});  // fails here
}
