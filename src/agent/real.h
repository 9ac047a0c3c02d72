#pragma once

#include <pthread.h>

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

// A hook that needs nothing but to be there: its subject is an object or { object, value }.
#define PLAIN_HOOK(type, name, parameters, arguments, ...)      \
  HOOK(type, name, parameters) {                                \
    if (passes(Api::name, CALLER)) return real::name arguments; \
    Visit visit(Api::name, CALLER, Subject{__VA_ARGS__});       \
    Turn turn(visit, Subject{__VA_ARGS__});                     \
    return visit.leave(real::name arguments);                   \
  }
