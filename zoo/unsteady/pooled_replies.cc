// A poller hands requests to a pool of two, and the replies are expected in the order of the
// requests.
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "support/chance.h"

namespace {

// A socket at each end: what the client writes, and what the pool answers to.
struct Link {
  Link() { ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()); }
  ~Link() {
    for (const int end : ends) ::close(end);
  }
  std::array<int, 2> ends{};
};

using Links = std::array<Link, 6>;

class Pool {
 public:
  Pool() : workers_{std::thread([this] { work(); }), std::thread([this] { work(); })} {}

  void serve(int request) {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
    changed_.notify_one();
  }

  std::string replies() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    for (std::thread& worker : workers_) worker.join();
    return replies_;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopped_ || !requests_.empty(); });
      if (requests_.empty()) return;
      const int request = requests_.front();
      requests_.pop_front();
      lock.unlock();
      char name = '?';
      if (::read(request, &name, 1) != 1 || ::write(request, &name, 1) != 1) name = '!';
      if (draw(8) == 0) padding_ += compute(name);  // a large one
      lock.lock();
      replies_ += name;  // critical, barrier
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> requests_;
  std::string replies_;
  std::atomic<unsigned> padding_{0};
  bool stopped_ = false;
  std::array<std::thread, 2> workers_;
};

// Hands on every request that has come, once.
void poll_requests(Links& links, Pool& pool) {
  std::array<pollfd, 6> waiting{};
  for (std::size_t i = 0; i < links.size(); ++i) waiting[i] = {links[i].ends[1], POLLIN, 0};
  for (std::size_t served = 0; served < links.size();) {
    ::poll(waiting.data(), waiting.size(), 1000);
    for (pollfd& one : waiting) {
      if ((one.revents & POLLIN) == 0) continue;
      pool.serve(one.fd);
      one.fd = -1;
      ++served;
    }
  }
}

TEST(Pool, Answers_in_order) {
  Links links;
  Pool pool;
  std::thread poller([&] { poll_requests(links, pool); });
  for (std::size_t i = 0; i < links.size(); ++i)
    EXPECT_EQ(::write(links[i].ends[0], &"abcdef"[i], 1), 1);
  poller.join();
  EXPECT_EQ(pool.replies(), "abcdef");  // fails here
}

}  // namespace
