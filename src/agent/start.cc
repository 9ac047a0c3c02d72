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

using Main = int (*)(int, char**, char**);
Main real_main;

int serve_and_call_main(int, char**, char**) {
  return call_main_somewhere_else(real_main, serve());
}

void (*end_libraries)();

// exit() calls it last but for flushing stdio, however the program came to exit: handlers have run
// and global objects are gone, so a late thread meets what it would meet in an unlucky run.
void end_libraries_and_hold() {
  if (end_libraries != nullptr) end_libraries();
  hold_exit();
  end_process();
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
  end_libraries = rtld_fini;
  return real::__libc_start_main(is_to_serve() ? serve_and_call_main : main, argc, argv, init, fini,
                                 end_libraries_and_hold, stack_end);
}

}  // namespace unflake::agent
