#include "agent/start.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/clock.h"
#include "agent/failure.h"
#include "agent/fork_server.h"
#include "agent/inherit.h"
#include "agent/memory.h"
#include "agent/probes.h"
#include "agent/process.h"
#include "agent/real.h"
#include "agent/signals.h"
#include "agent/threads.h"

namespace unflake::agent {
namespace {

bool started = false;

// Other libraries' constructors may run before this one; then their first hooked call has started
// the agent.
__attribute__((constructor)) void start_at_load() {
  start();
}

__attribute__((destructor)) void end_at_exit() {
  end_process();
}

using Main = int (*)(int, char**, char**);
Main real_main;

// A return from main ends the process as exit() does, and does not call it by its name.
int main_and_hold(int argc, char** argv, char** environment) {
  const int status = real_main(argc, argv, environment);
  hold_exit();
  return status;
}

int serve_and_hold(int, char**, char**) {
  return call_main_somewhere_else(main_and_hold, serve());
}

Main main_around(Main main) {
  if (is_to_serve()) return serve_and_hold;
  return attached() ? main_and_hold : main;
}

}  // namespace

void start() {
  if (started || environ == nullptr) return;
  started = true;
  resolve_real_functions();
  resolve_clock();
  if (const char* socket = getenv(protocol::fork_server_variable))
    plan_to_serve(socket);
  else
    join_run(getenv(protocol::memory_variable));
}

void join_run(const char* memory_name) {
  if (!attach(memory_name)) return;
  remember_inheritance(memory_name);
  meet_process();
  meet_first_thread();
  if (captures_failures()) watch_fatal_signals();
  install_probes();
}

HOOK(int, __libc_start_main,
     (Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
      void* stack_end)) {
  resolve_real_functions();
  real_main = main;
  return real::__libc_start_main(main_around(main), argc, argv, init, fini, rtld_fini, stack_end);
}

}  // namespace unflake::agent
