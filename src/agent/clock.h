#pragma once

#include <stdint.h>
#include <time.h>

namespace unflake::agent {

// CLOCK_MONOTONIC in ns, bypassing every hook and interceptor.
uint64_t now_ns();
uint64_t now_ns(clockid_t clock);
void resolve_clock();
// Without the vDSO, whose clocks read the time stamp counter.
void ask_kernel_for_time();

inline constexpr int64_t ns_per_second = 1'000'000'000;

// The end of time means what is beyond it.
inline int64_t to_ns(const timespec& time) {
  int64_t ns;
  if (!__builtin_mul_overflow(time.tv_sec, ns_per_second, &ns) &&
      !__builtin_add_overflow(ns, time.tv_nsec, &ns))
    return ns;
  return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
}
inline timespec to_timespec(int64_t ns) {
  return {ns / ns_per_second, ns % ns_per_second};
}

// Sleeps until this time, whatever signals come; accurate to a few microseconds.
void sleep_until(uint64_t deadline_ns);

}  // namespace unflake::agent
