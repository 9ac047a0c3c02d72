#pragma once

namespace unflake {

// Times in all the ways in which people write them. One file for all, because libclang takes a
// second for its headers. A comment at the end of a line is the line's name.
inline constexpr const char* timed_source = R"source(#include <chrono>
#include <condition_variable>
#include <future>
#include <thread>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "waits.h"
using namespace std::chrono_literals;
using std::chrono::milliseconds;
#define DELAY_MS 200
#define SHARED_DELAY_MS (200)
#define CHECK(x) do { if (!(x)) throw 1; } while (false)
constexpr auto kDelay = 200ms;
constexpr auto kShared = 200ms;
const int kDelayMs = 200;
struct Options {
  static constexpr int poll_ms = 200;
  int field_ms = 200;
};
struct Config { std::chrono::milliseconds delay; } config;
inline void wait_ms(int ms) { usleep(static_cast<unsigned>(ms) * 1000); }
void wait_default(std::chrono::milliseconds time = 200ms) {
  std::this_thread::sleep_for(time);  // in wait_default
}
void called(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }  // in called

void sleeps(int argument) {
  std::this_thread::sleep_for(200ms);  // suffix
  std::this_thread::sleep_for(1s);  // seconds
  std::this_thread::sleep_for(0.5s);  // floating
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // named
  std::this_thread::sleep_for(std::chrono::seconds(1));  // named seconds
  std::this_thread::sleep_for(milliseconds{200});  // braces
  std::this_thread::sleep_for(std::chrono::duration<double>(0.2));  // double
  std::this_thread::sleep_until(std::chrono::steady_clock::now() + 200ms);  // until
  std::this_thread::sleep_for(kDelay);  // constant
  std::this_thread::sleep_for(kShared);  // shared
  std::this_thread::sleep_for(kShared);
  std::this_thread::sleep_for(milliseconds(DELAY_MS));  // macro
  usleep(SHARED_DELAY_MS * 1000);  // shared macro
  usleep(SHARED_DELAY_MS * 1000);
  usleep(200 * 1000);  // product
  usleep(200'000);  // separators
  usleep(0x30d40);  // hexadecimal
  sleep(1);  // whole seconds
  usleep(kDelayMs * 1000);  // plain constant
  std::this_thread::sleep_for(config.delay);  // run time
  std::this_thread::sleep_for(milliseconds(argument));  // parameter
  wait_ms(200);  // wrapper
  wait_default();  // default
  called(200);
  called(300);
  called(300);
  std::this_thread::sleep_for(kInHeader);  // header
  std::this_thread::sleep_for(2 * 100ms);  // two literals
  usleep(200000); usleep(200000);  // two calls
  usleep(300000); usleep(200000);  // another call
}

void variables() {
  std::chrono::seconds typed = 1s;
  std::this_thread::sleep_for(typed);  // typed
  std::chrono::milliseconds cut = std::chrono::duration_cast<std::chrono::seconds>(1s);
  std::this_thread::sleep_for(cut);  // cut
  auto changed = 200ms;
  changed += 5ms;
  std::this_thread::sleep_for(changed);  // changed
  auto untouched = 200ms;
  std::this_thread::sleep_for(untouched);  // untouched
  for (const auto each : {100ms, 200ms}) std::this_thread::sleep_for(each);  // loop
  Options options;
  usleep(options.field_ms * 1000);  // field
}

void waits(std::condition_variable& cv, std::unique_lock<std::mutex>& lock,
           std::future<int>& answer, pollfd* fds) {
  CHECK(cv.wait_for(lock, 200ms) == std::cv_status::timeout);  // in a macro
  const bool done =  // statement
      cv.wait_for(lock,
                  200ms,  // second line
                  [] { return false; });
  answer.wait_for(2s);  // future
  poll(fds, 1, 1000);  // poll
  poll(fds, 1, Options::poll_ms);  // member
  (void)done;
}

void structures(int fd) {
  timespec ts{0, 200000000};
  nanosleep(&ts, nullptr);  // timespec
  timeval tv = {2, 0};
  select(0, nullptr, nullptr, nullptr, &tv);  // timeval
  timeval designated = {.tv_sec = 2, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &designated, sizeof designated);  // designated
  timespec assigned;
  assigned.tv_sec = 2;
  assigned.tv_nsec = 500 * 1000 * 1000;
  nanosleep(&assigned, nullptr);  // assigned
  timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 2;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_timedlock(&mutex, &deadline);  // deadline
  const itimerval timer{{0, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);  // timer
}

template <class T>
void in_template(T value) {
  std::this_thread::sleep_for(200ms);  // template
  (void)value;
}

#ifdef __clang__
int broken = no_such_name;
#endif
)source";

inline constexpr const char* timed_header = R"source(#pragma once
constexpr std::chrono::milliseconds kInHeader{200};
)source";

}  // namespace unflake
