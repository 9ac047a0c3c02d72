// A stage is told by a flag of its own and a shared bell; the flag of the last stage is set without
// the lock.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

std::mutex mutex;
std::condition_variable bell;
std::atomic<bool> washed{false}, dried{false};

void wash() {
  std::lock_guard lock(mutex);
  washed = true;
  bell.notify_all();
}

void dry() {
  std::unique_lock lock(mutex);
  while (!washed) bell.wait(lock);
  lock.unlock();
  dried = true;       // step
  bell.notify_all();  // barrier
}

void put_away() {
  std::unique_lock lock(mutex);
  while (!dried)      // step
    bell.wait(lock);  // critical
}

}  // namespace

int main() {
  std::thread washer(wash);
  std::thread dryer(dry);
  std::thread last(put_away);
  washer.join();
  dryer.join();
  last.join();
}
