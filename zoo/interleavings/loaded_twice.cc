// A cache looks under a shared lock and loads under its own, without looking again.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

class Cache {
 public:
  void need(const std::string& page) {
    if (has(page)) return;  // barrier
    std::unique_lock lock(mutex_);
    pages_[page] += 1;  // critical
  }

  int loads(const std::string& page) const {
    std::shared_lock lock(mutex_);
    return pages_.at(page);
  }

 private:
  bool has(const std::string& page) const {
    std::shared_lock lock(mutex_);
    return pages_.count(page) != 0;
  }

  mutable std::shared_mutex mutex_;
  std::map<std::string, int> pages_;
};

TEST(Cache, Loads_a_page_once) {
  Cache cache;
  std::thread one([&] { cache.need("index"); });
  std::thread other([&] { cache.need("index"); });
  one.join();
  other.join();
  EXPECT_EQ(cache.loads("index"), 1);  // fails here
}

}  // namespace
