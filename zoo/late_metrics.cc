// Globals go in the opposite order of their making: the registry before the sampler that fills it.
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;

std::atomic<bool> registry_gone{false};

class Registry {
 public:
  ~Registry() { registry_gone = true; }  // barrier

  void add(const std::string& metric, int value) {
    assert(!registry_gone);  // fails here
    std::lock_guard lock(mutex_);
    metrics_[metric] += value;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> metrics_;
};

Registry& registry();

class Sampler {
 public:
  ~Sampler() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;  // critical
    }
    stopped_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    thread_ = std::thread([this] { sample(); });
  }

 private:
  void sample() {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, milliseconds(60), [this] { return stopping_; }))
      registry().add("cpu", 12);
  }

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;
};

Sampler sampler;
Registry the_registry;

Registry& registry() {
  return the_registry;
}

}  // namespace

int main() {
  sampler.start();
  std::this_thread::sleep_for(milliseconds(80));
  registry().add("disk", 7);
}
