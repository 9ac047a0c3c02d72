// A shelf for one loaf has one bell for both "there is bread" and "there is room", and rings for
// one listener only.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

namespace {

class Shelf {
 public:
  void put() {
    std::unique_lock lock(mutex_);   // critical
    while (full_) bell_.wait(lock);  // step
    full_ = true;
    bell_.notify_one();
  }

  void take() {
    std::unique_lock lock(mutex_);
    while (!full_) bell_.wait(lock);  // barrier
    full_ = false;
    bell_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
  bool full_ = false;
};

}  // namespace

int main() {
  Shelf shelf;
  std::thread baker([&] {
    shelf.put();
    shelf.put();
  });
  for (int lamp = 0; lamp < 3; ++lamp) std::thread([] { std::puts("light"); }).join();
  std::thread customer([&] {
    std::thread friend_of_hers([&] { shelf.take(); });
    shelf.take();
    friend_of_hers.join();
  });
  baker.join();
  customer.join();
}
