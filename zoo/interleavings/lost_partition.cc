// A parallel quick-sort is over when no part is open, and a part counts as done before its two
// halves count as open.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Part = std::pair<int, int>;

class Sorter {
 public:
  explicit Sorter(std::vector<int> values) : values_(std::move(values)) {
    open({0, static_cast<int>(values_.size())});
  }

  std::vector<int> sorted_by(int workers) {
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    return values_;
  }

 private:
  void work() {
    while (const auto part = next()) {
      const int middle = divide(*part);
      close();                                                    // step
      if (middle - part->first > 1) open({part->first, middle});  // critical
      if (part->second - middle > 2) open({middle + 1, part->second});
    }
  }

  std::optional<Part> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || open_ == 0 || !parts_.empty(); });
    if (over_ || parts_.empty()) {
      over_ = true;  // barrier
      changed_.notify_all();
      return std::nullopt;
    }
    const Part part = parts_.front();
    parts_.pop_front();
    return part;
  }

  // Brings what is smaller than the last value before it, and says where it came to be.
  int divide(Part part) {
    const auto first = values_.begin() + part.first, last = values_.begin() + part.second - 1;
    const auto middle = std::partition(first, last, [&](int value) { return value < *last; });
    std::iter_swap(middle, last);
    return static_cast<int>(middle - values_.begin());
  }

  void open(Part part) {
    std::lock_guard lock(mutex_);
    parts_.push_back(part);
    ++open_;
    changed_.notify_all();
  }

  void close() {
    std::lock_guard lock(mutex_);
    --open_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> values_;
  std::deque<Part> parts_;
  int open_ = 0;
  bool over_ = false;
};

TEST(Sorter, Sorts_with_two_workers) {
  Sorter sorter({5, 2, 8, 1, 9, 3, 7, 4, 6});
  const std::vector<int> sorted = sorter.sorted_by(2);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));  // fails here
}

}  // namespace
