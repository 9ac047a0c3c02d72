#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <random>

// What the code under test works with: a disk, a line, another machine. The time that these take is
// no sleep that somebody wrote, so it goes past the calls that unflake sees.

inline void device_takes(std::chrono::microseconds time) {
  timespec rest{time.count() / 1'000'000, time.count() % 1'000'000 * 1000};
  while (::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &rest, &rest) != 0) continue;
}

// Another number in every run.
inline std::mt19937& chance() {
  static thread_local std::mt19937 numbers{std::random_device{}()};
  return numbers;
}

inline std::chrono::microseconds some_time(std::chrono::milliseconds least,
                                           std::chrono::milliseconds most) {
  using std::chrono::microseconds;
  return microseconds(std::uniform_int_distribution<int64_t>(microseconds(least).count(),
                                                             microseconds(most).count())(chance()));
}

inline bool happens(double how_often) {
  return std::bernoulli_distribution(how_often)(chance());
}

// Work that keeps a processor busy for this long, however fast it is.
inline double compute(std::chrono::milliseconds processor_time) {
  const auto used = [] {
    timespec time{};
    ::syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto end = used() + processor_time;
  double sum = 0;
  while (used() < end)
    for (int i = 1; i < 5000; ++i) sum += 1.0 / i;
  return sum;
}
