// Settings are read at first use, and the flag that says so is set too early.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

namespace {

using std::chrono::milliseconds;

class Settings {
 public:
  explicit Settings(std::string text) : text_(std::move(text)) {}

  std::string get(const std::string& key) {
    load_once();
    std::lock_guard lock(values_mutex_);  // barrier
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
  }

 private:
  void load_once() {
    if (loaded_) return;
    std::lock_guard lock(loading_mutex_);
    if (loaded_) return;
    loaded_ = true;
    load();
  }

  void load() {
    std::map<std::string, std::string> values;
    std::istringstream lines(text_);
    for (std::string key, value; std::getline(lines, key, '=') && std::getline(lines, value);)
      values[key] = value;
    std::lock_guard lock(values_mutex_);
    values_ = std::move(values);  // critical
  }

  std::string text_;
  std::atomic<bool> loaded_{false};
  std::mutex loading_mutex_;
  std::mutex values_mutex_;
  std::map<std::string, std::string> values_;
};

TEST(Settings, Are_the_same_for_every_thread) {
  Settings settings("host=example.org\nport=8080\n");
  std::string host;
  std::thread other([&] { host = settings.get("host"); });
  std::this_thread::sleep_for(milliseconds(25));
  const std::string port = settings.get("port");
  other.join();
  EXPECT_EQ(host, "example.org");
  EXPECT_EQ(port, "8080");  // fails here
}

}  // namespace
