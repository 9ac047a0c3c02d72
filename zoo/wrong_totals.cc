// Threads that are joined and a sum that is wrong every time: broken, and not flaky.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

class Warehouse {
 public:
  explicit Warehouse(std::vector<int> shelves) : shelves_(std::move(shelves)) {}

  // Each half is counted by a thread of its own; the last shelf is in neither.
  int count() const {
    const std::size_t half = shelves_.size() / 2;
    std::atomic<int> total{0};
    std::thread first([&] { total += sum(0, half); });
    std::thread second([&] { total += sum(half, shelves_.size() - 1); });
    first.join();
    second.join();
    return total;
  }

 private:
  int sum(std::size_t begin, std::size_t end) const {
    int items = 0;
    for (std::size_t i = begin; i < end; ++i) items += shelves_[i];
    return items;
  }

  std::vector<int> shelves_;
};

TEST(Warehouse, Counts_every_shelf) {
  const Warehouse warehouse({3, 1, 4, 1, 5, 9});
  EXPECT_EQ(warehouse.count(), 23);  // fails here
}

}  // namespace
