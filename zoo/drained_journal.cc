// Closing a journal announces the end before the last line is in the queue.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;

class Journal {
 public:
  explicit Journal(std::vector<std::string>& sink)
      : sink_(sink), writer_([this] { write_until_closed(); }) {}
  ~Journal() { close(); }

  void append(std::string line) {
    std::lock_guard lock(mutex_);
    pending_.push_back(std::move(line));  // critical
  }

  void close() {
    if (!writer_.joinable()) return;
    closing_ = true;
    append("-- closed --");
    writer_.join();
  }

 private:
  void write_until_closed() {
    bool last_round = false;
    while (!last_round) {
      std::this_thread::sleep_for(milliseconds(30));
      last_round = closing_;
      drain();  // barrier
    }
  }

  void drain() {
    std::lock_guard lock(mutex_);
    sink_.insert(sink_.end(), pending_.begin(), pending_.end());
    pending_.clear();
  }

  std::vector<std::string>& sink_;
  std::mutex mutex_;
  std::deque<std::string> pending_;
  std::atomic<bool> closing_{false};
  std::thread writer_;
};

TEST(Journal, Ends_with_a_closing_line) {
  std::vector<std::string> lines;
  Journal journal(lines);
  journal.append("opened");
  journal.append("balance: 12");
  journal.close();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "-- closed --");  // fails here
}

}  // namespace
