// A detached thread reports to a journal that is gone once main has returned.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

class Journal {
 public:
  ~Journal() {
    open_ = false;  // barrier
  }

  void note() {
    if (!open_) std::abort();  // critical
    ++notes_;
  }

 private:
  std::atomic<bool> open_{true};
  std::atomic<int> notes_{0};
};

Journal journal;

}  // namespace

int main() {
  std::thread cleaner([] { journal.note(); });
  cleaner.detach();
  std::puts("ready");
}
