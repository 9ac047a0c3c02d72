#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include "agent/real.h"
#include "agent/record/visit.h"
#include "agent/schedule/turns.h"
#include "agent/schedule/virtual_clock.h"

// The time values that calls are given, in all their shapes, as ns from now; -1: none, wait
// forever; or wrong_time.
namespace unflake::agent {

inline uint64_t word(const volatile void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}
inline uint64_t word(int descriptor) {
  return static_cast<uint64_t>(descriptor);
}

inline bool is_right(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < ns_per_second;
}
inline bool is_right(const timeval& time) {
  return time.tv_sec >= 0 && time.tv_usec >= 0 && time.tv_usec < ns_per_second / 1000;
}

inline int64_t within(const timespec* time) {
  if (time == nullptr) return -1;
  return is_right(*time) ? to_ns(*time) : wrong_time;
}
inline int64_t within(const timeval* time) {
  if (time == nullptr) return -1;
  return is_right(*time) ? to_ns({time->tv_sec, time->tv_usec * 1000}) : wrong_time;
}
inline int64_t within_ms(int time) {
  return time >= 0 ? time * int64_t{1'000'000} : -1;
}

inline Subject until(uint64_t object, clockid_t clock, const timespec* deadline) {
  if (deadline == nullptr) return {object};
  if (!is_right(*deadline)) return {object, wrong_time};
  const int64_t end = to_ns(*deadline);
  const int64_t now = program_now(clock);
  return {object, end > now ? end - now : 0, end, now};
}

// What to pass to the real call: the time that it was given, or the plan's.
inline const timespec* relative_time(const Visit& visit, const timespec* given, timespec& room) {
  if (visit.other_time() < 0) return given;
  room = to_timespec(visit.other_time());
  return &room;
}

inline const timespec* absolute_time(const Visit& visit, clockid_t clock, const timespec* given,
                                     timespec& room) {
  if (visit.other_time() < 0) return given;
  const int64_t deadline = visit.other_deadline();
  room = to_timespec(deadline >= 0 ? deadline
                                   : static_cast<int64_t>(now_ns(clock)) + visit.other_time());
  return &room;
}

// What an interrupted call says about the rest is about the plan's time.
inline void tell_rest(const Visit& visit, bool interrupted, timespec* rest) {
  if (interrupted && rest != nullptr && visit.other_time() >= 0)
    *rest = to_timespec(visit.rest_to_tell(to_ns(*rest)));
}

// For a timer, or a time-out that is set for later: 0 would disarm it.
inline int64_t time_to_arm(int64_t ns) {
  return ns > 1000 ? ns : 1000;
}

// A short time must not become none.
inline int64_t to_us(int64_t ns) {
  return ns / 1000 + (ns % 1000 > 0);
}
inline timeval to_timeval(int64_t ns) {
  const int64_t us = to_us(ns);
  return {us / 1'000'000, us % 1'000'000};
}
inline int to_ms(int64_t ns) {
  const int64_t ms = ns / 1'000'000 + (ns % 1'000'000 > 0);
  return ms < INT_MAX ? static_cast<int>(ms) : INT_MAX;
}

}  // namespace unflake::agent
