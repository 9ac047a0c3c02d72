#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/sites.h"
#include "agent/record/threads.h"

namespace unflake::agent {

using protocol::FailureKind;

namespace {

// The beginning of every std::type_info.
struct TypeInfo {
  const void* functions;
  const char* name;
};

void remember_throw(const TypeInfo* type) {
  Guard guard;
  if (!captures_failures() || !guard || !meet_this_thread()) return;
  ThreadExtra* extra = thread_extra();
  if (extra == nullptr) return;
  take_stack(extra->thrown);
  extra->thrown_type = type != nullptr ? type->name : nullptr;
}

void capture_abort(const void* caller) {
  Guard guard;
  if (!captures_failures() || !guard || !meet_this_thread() || this_thread.aborts) return;
  this_thread.aborts = true;
  StackSnapshot stack;
  take_stack(stack);
  const ThreadExtra* extra = this_thread.extra;
  // Nothing but terminate() calls abort() from there.
  if (is_cxx_runtime(caller) && extra != nullptr && extra->thrown.count > 0)
    capture_failure(FailureKind::exception, extra->thrown, {.type = extra->thrown_type});
  else
    capture_failure(FailureKind::abort, stack);
}

void capture_assert(const FailureText& text) {
  Guard guard;
  if (!captures_failures() || !guard || !meet_this_thread()) return;
  this_thread.aborts = true;
  StackSnapshot stack;
  take_stack(stack);
  capture_failure(FailureKind::assert_macro, stack, text);
}

using Throw = void (*)(void*, const TypeInfo*, void (*)(void*));

// A program without the C++ library may load a plugin that brings it along, where only the plugin's
// own dependencies reach it.
Throw find_throw(const void* caller) {
  static void* const next = dlsym(RTLD_NEXT, "__cxa_throw");
  if (next != nullptr) return reinterpret_cast<Throw>(next);
  Dl_info info;
  void* image = nullptr;
  dladdr1(caller, &info, &image, RTLD_DL_LINKMAP);
  return reinterpret_cast<Throw>(dlsym(image, "__cxa_throw"));
}

}  // namespace

HOOK(void, __assert_fail,
     (const char* expression, const char* file, unsigned line, const char* function)) {
  resolve_real_functions();
  capture_assert({expression, file, line});
  real::__assert_fail(expression, file, line, function);
}

HOOK(void, abort, ()) {
  resolve_real_functions();
  capture_abort(__builtin_return_address(0));
  real::abort();
}

UNFLAKE_DEFINE(void, __cxa_throw, (void* exception, const TypeInfo* type, void (*destroy)(void*))) {
  const Throw next = find_throw(__builtin_return_address(0));
  remember_throw(type);
  next(exception, type, destroy);
}

}  // namespace unflake::agent
