// A writer gives up when readers keep a table for longer than usual.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

class RoutingTable {
 public:
  // Walks the whole table, which takes a while.
  std::size_t hops_in_total() {
    std::shared_lock lock(mutex_);
    std::size_t hops = 0;
    for (const auto& [network, distance] : routes_) hops += distance;
    std::this_thread::sleep_for(milliseconds(2));
    return hops;  // critical
  }

  bool add(const std::string& network, std::size_t distance) {
    std::unique_lock lock(mutex_, milliseconds(120));  // barrier
    if (!lock) return false;
    routes_[network] = distance;
    return true;
  }

 private:
  std::shared_timed_mutex mutex_;
  std::map<std::string, std::size_t> routes_{{"10.0.0.0/8", 1}, {"192.168.0.0/16", 2}};
};

class Dashboard {
 public:
  explicit Dashboard(RoutingTable& table) : refresher_([this, &table] { refresh(table); }) {}
  ~Dashboard() {
    closed_ = true;
    refresher_.join();
  }

 private:
  void refresh(RoutingTable& table) {
    while (!closed_) {
      hops_ = table.hops_in_total();
      std::this_thread::sleep_for(milliseconds(8));
    }
  }

  std::atomic<bool> closed_{false};
  std::atomic<std::size_t> hops_{0};
  std::thread refresher_;
};

TEST(RoutingTable, Can_be_changed_while_it_is_shown) {
  RoutingTable table;
  Dashboard dashboard(table);
  std::this_thread::sleep_for(milliseconds(40));
  EXPECT_TRUE(table.add("172.16.0.0/12", 3));  // fails here
}

}  // namespace
