#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

// The functions behind the hooks: those that a call would reach without the agent.
namespace unflake::agent {

struct RealFunction {
  const char* name;
  const char* version;  // nullptr: the default
  void** place;
};

// Finds all of them, once.
void resolve_real_functions();

namespace real {
extern int (*pthread_mutex_lock)(pthread_mutex_t*);
extern int (*pthread_mutex_unlock)(pthread_mutex_t*);
}  // namespace real

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

#define UNFLAKE_REAL(type, name, parameters, version)                    \
  namespace real {                                                       \
  type(*name) parameters;                                                \
  __attribute__((section("unflake_real"), used,                          \
                 aligned(8))) static const RealFunction name##_entry = { \
      #name, version, reinterpret_cast<void**>(&name)};                  \
  }

// Defines what a call of `name` reaches first. The function has another name here, so that libc's
// declaration of it, with whatever attributes, does not matter.
#define UNFLAKE_DEFINE(type, name, parameters)            \
  extern "C" __attribute__((visibility("default"), used)) \
  type hook_##name parameters __asm__(#name);             \
  type hook_##name parameters

#define HOOK(type, name, parameters)            \
  UNFLAKE_REAL(type, name, parameters, nullptr) \
  UNFLAKE_DEFINE(type, name, parameters)

#define HOOK_VERSION(type, name, parameters, version) \
  UNFLAKE_REAL(type, name, parameters, version)       \
  UNFLAKE_DEFINE(type, name, parameters)

#define CALLER                                         \
  Caller {                                             \
    __builtin_return_address(0), __builtin_dwarf_cfa() \
  }

// A hook that only has to exist: its subject is an object or { object, value }.
#define PLAIN_HOOK(type, name, parameters, arguments, ...)      \
  HOOK(type, name, parameters) {                                \
    if (passes(Api::name, CALLER)) return real::name arguments; \
    Visit visit(Api::name, CALLER, Subject{__VA_ARGS__});       \
    Turn turn(visit, Subject{__VA_ARGS__});                     \
    return visit.leave(real::name arguments);                   \
  }
