// A download tells by a signal that it has finished, and whoever wants to know waits for that.
#include <doctest/doctest.h>

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace {

using std::chrono::milliseconds;

// Lets those go on who wait for it.
class Signal {
 public:
  void raise() {
    const Guard guard(mutex_);
    ::pthread_cond_broadcast(&raised_);
  }

  bool wait_for(milliseconds patience) {
    timespec deadline{};
    ::clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += patience.count() * 1'000'000;
    deadline.tv_sec += deadline.tv_nsec / 1'000'000'000;
    deadline.tv_nsec %= 1'000'000'000;
    const Guard guard(mutex_);
    return ::pthread_cond_clockwait(&raised_, &mutex_, CLOCK_MONOTONIC, &deadline) == 0;
  }

 private:
  class Guard {
   public:
    explicit Guard(pthread_mutex_t& mutex) : mutex_(mutex) { ::pthread_mutex_lock(&mutex_); }
    ~Guard() { ::pthread_mutex_unlock(&mutex_); }

   private:
    pthread_mutex_t& mutex_;
  };

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t raised_ = PTHREAD_COND_INITIALIZER;
};

class Download {
 public:
  explicit Download(std::string address) : address_(std::move(address)) {}
  ~Download() { thread_.join(); }

  std::string file_name() const { return address_.substr(address_.rfind('/') + 1); }

  bool wait_until_finished() {
    return finished_.wait_for(milliseconds(300));  // critical
  }

 private:
  void fetch() {
    std::this_thread::sleep_for(milliseconds(50));  // the network
    finished_.raise();                              // barrier
  }

  std::string address_;
  Signal finished_;
  std::thread thread_{[this] { fetch(); }};
};

}  // namespace

TEST_CASE("a download finishes") {
  Download download("http://example.org/films/metropolis.ogv");
  CHECK(download.file_name() == "metropolis.ogv");
  CHECK(download.wait_until_finished());  // fails here
}
