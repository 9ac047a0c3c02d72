// A loop that looks every 5 ms: it ends when the work does, so the interval costs next to nothing.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

template <class Holds>
bool eventually(Holds holds) {
  for (int look = 0; look < 400; ++look) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(5));  // value
  }
  return false;
}

}  // namespace

int main() {
  std::atomic<bool> imported{false};
  std::thread import([&] {
    device_takes(milliseconds(60));
    imported = true;
  });
  const bool seen = eventually([&] { return imported.load(); });
  import.join();
  if (seen) return EXIT_SUCCESS;
  std::fputs("nothing was imported\n", stderr);
  return EXIT_FAILURE;
}
