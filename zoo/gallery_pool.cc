// Two tasks of one pool, of which the second needs what the first one makes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

// Runs tasks in as many threads as it is told to; they take the next one when they are free.
class Pool {
 public:
  static void run(const std::vector<std::function<void()>>& tasks, int workers) {
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        for (std::size_t task = next++; task < tasks.size(); task = next++) tasks[task]();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

class Gallery {
 public:
  void make_thumbnail(const std::string& picture) {
    const std::string thumbnail = picture.substr(0, picture.find('.')) + ".thumb";
    std::lock_guard lock(mutex_);
    thumbnails_[picture] = thumbnail;  // critical
  }

  void build_index() {
    read_titles();
    std::lock_guard lock(mutex_);
    for (const auto& [picture, thumbnail] : thumbnails_) index_.push_back(thumbnail);  // barrier
  }

  const std::vector<std::string>& index() const { return index_; }

 private:
  // From a slow disk.
  static void read_titles() { std::this_thread::sleep_for(milliseconds(25)); }

  std::mutex mutex_;
  std::map<std::string, std::string> thumbnails_;
  std::vector<std::string> index_;
};

TEST(Gallery, Has_an_index_of_all_thumbnails) {
  Gallery gallery;
  Pool::run({[&] { gallery.make_thumbnail("beach.jpg"); }, [&] { gallery.build_index(); }}, 2);
  EXPECT_EQ(gallery.index(), std::vector<std::string>{"beach.thumb"});  // fails here
}

}  // namespace
