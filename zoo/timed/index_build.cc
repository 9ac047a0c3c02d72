// An index is computed by a thread: how long that takes is the processor's business.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class Index {
 public:
  Index()
      : builder_([this] {
          weight_ = compute(milliseconds(45));
          ready_ = true;
        }) {}
  ~Index() { builder_.join(); }

  bool is_ready() const { return ready_; }

 private:
  double weight_ = 0;
  std::atomic<bool> ready_{false};
  std::thread builder_;
};

}  // namespace

int main() {
  const Index index;
  std::this_thread::sleep_until(steady_clock::now() + milliseconds(240));  // value
  if (index.is_ready()) return EXIT_SUCCESS;
  std::fputs("the index is not ready\n", stderr);
  return EXIT_FAILURE;
}
