#pragma once

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

// What the rest of the agent asks of the hooks.
namespace unflake::agent {

// Signals, as far as the agent depends on them: a fatal one is written down before it ends the
// process; SIGTRAP belongs to probes and is never blocked; and no handler of the program meets an
// instruction pointer that is not in its own code.

// From here on the hooks on signal functions are active, and fatal signals are captured.
void watch_fatal_signals();

// Takes over SIGTRAP, with `on_trap`, and the handlers that the program has by now. False: SIGTRAP
// is not available.
using TrapHandler = void (*)(int, siginfo_t*, void*);
bool take_trap(TrapHandler on_trap);

bool unblock_trap();  // for this thread

bool handlers_are_wrapped();
bool trap_is_taken();

// The mask that may be given to the system instead of this one: nullptr stays nullptr, and without
// probes it is the same.
const sigset_t* filter_mask(const sigset_t* mask, sigset_t* copy);

// What sigaction() would do for a program without probes.
int change_action(int signal, const struct sigaction* action, struct sigaction* old);

// A SIGTRAP that no probe caused: what would have happened to the program without probes.
void give_trap_to_program(int signal, siginfo_t* info, void* context);

// Whether the program has asked the system for random numbers so far: what it made of them before
// its main, all forks of a server would share.
bool random_was_drawn();

// In a controlled run, instead of /dev/urandom and the like: a file whose bytes come from the seed.
// -1: there is no memory.
bool is_random_device(const char* path);
int open_seeded_device(int flags);

}  // namespace unflake::agent
