// An interval timer's signal ends the night; the coffee must be ready.
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/device.h"

namespace {

using std::chrono::milliseconds;

void set_alarm(milliseconds time) {
  const itimerval once{{0, 0}, {0, std::chrono::microseconds(time).count()}};
  ::setitimer(ITIMER_REAL, &once, nullptr);  // value
}

}  // namespace

int main() {
  sigset_t alarm_only;
  ::sigemptyset(&alarm_only);
  ::sigaddset(&alarm_only, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm_only, nullptr);
  std::atomic<bool> coffee{false};
  std::thread machine([&] {
    device_takes(milliseconds(75));
    coffee = true;
  });
  set_alarm(milliseconds(190));
  int signal = 0;
  ::sigwait(&alarm_only, &signal);
  const bool ready = coffee;
  machine.join();
  if (ready) return EXIT_SUCCESS;
  std::fputs("there is no coffee\n", stderr);
  return EXIT_FAILURE;
}
