#include "agent/fork_handlers.h"

#include <dlfcn.h>

#include "agent/real.h"

namespace unflake::agent {
namespace {

using Handler = void (*)();

struct Handlers {
  Handler prepare;
  Handler parent;
  Handler child;
};

constexpr int most_handlers = 64;
Handlers registered[most_handlers];
int registrations = 0;

int count() {
  return registrations < most_handlers ? registrations : most_handlers;
}

// The library that has registered it may have been unloaded since.
void run(Handler handler) {
  Dl_info info{};
  if (handler != nullptr && dladdr(reinterpret_cast<void*>(handler), &info) != 0) handler();
}

}  // namespace

bool too_many_fork_handlers() {
  return registrations > most_handlers;
}

// In the order that POSIX gives: the last one prepares first.
void run_prepare_handlers() {
  for (int i = count(); i-- > 0;) run(registered[i].prepare);
}

void run_parent_handlers() {
  for (int i = 0; i < count(); ++i) run(registered[i].parent);
}

void run_child_handlers() {
  for (int i = 0; i < count(); ++i) run(registered[i].child);
}

// What pthread_atfork calls.
HOOK(int, __register_atfork, (Handler prepare, Handler parent, Handler child, void* library)) {
  resolve_real_functions();
  const int number = __atomic_fetch_add(&registrations, 1, __ATOMIC_RELAXED);
  if (number < most_handlers) registered[number] = {prepare, parent, child};
  return real::__register_atfork(prepare, parent, child, library);
}

}  // namespace unflake::agent
