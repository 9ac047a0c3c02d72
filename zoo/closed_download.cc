// A download reports progress to a listener that is taken away while it still runs.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace {

using std::chrono::milliseconds;

class Download {
 public:
  using Listener = std::function<void(int percent)>;

  explicit Download(Listener listener) : listener_(std::move(listener)) {
    worker_ = std::thread([this] { fetch(); });
  }
  ~Download() { worker_.join(); }

  void close() {
    std::lock_guard lock(mutex_);
    listener_ = nullptr;  // barrier
  }

 private:
  void fetch() {
    for (const int percent : {25, 50, 75, 100}) {
      std::this_thread::sleep_for(milliseconds(2));
      std::lock_guard lock(mutex_);
      listener_(percent);  // critical
    }
  }

  std::mutex mutex_;
  Listener listener_;
  std::thread worker_;
};

class ProgressBar {
 public:
  void show(int percent) { text_ = std::to_string(percent) + " %"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "0 %";
};

TEST(Download, Fills_the_progress_bar) {
  auto bar = std::make_unique<ProgressBar>();
  {
    Download download([&](int percent) { bar->show(percent); });
    std::this_thread::sleep_for(milliseconds(60));
    download.close();
  }
  EXPECT_FALSE(bar->text().empty());
}

}  // namespace
