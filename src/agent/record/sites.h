#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "agent/record/threads.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// The number of a site in the report; none: there was no room.
uint32_t number_of_site(uint64_t key, protocol::Address address, uint16_t api, uint32_t probe);

// What this thread knows about the place that called, from which it can be acted on; nullptr: the
// call passes untouched.
protocol::Tally* tally_of_call(protocol::Api api, const Caller& caller);
protocol::Tally* tally_of_probe(uint32_t probe, uint64_t address);

// To be called when this code was unloaded: other code may get these addresses.
void forget_places(uint64_t start, uint64_t end);

// Both go to the site itself when the thread has no room for it. The first says how often this
// thread, or those without room, had been there before.
uint64_t count_visit(protocol::Tally& tally, uint32_t site);
void count_wait(protocol::Tally& tally, uint32_t site, uint64_t ns);

inline constexpr uint16_t no_plan_site = 0xffff;

// The return addresses above this call, innermost first, without the agent's own.
void take_stack(StackSnapshot& stack);

// The same for a hooked call, as it was found before when the return addresses are still all where
// they were: a fraction of the cost of unwinding. nullptr: there is no memory.
KnownStack* stack_of(const Caller& caller);
uint32_t number_of_stack(KnownStack& known);

// Its number in the report, the same for the same stack; none: there was no room.
uint32_t number_of_stack(const StackSnapshot& stack);

// Identifies a stack across runs: by images' names and offsets.
uint64_t hash_of_stack(const StackSnapshot& stack);

struct FailureText {
  const char* message = nullptr;
  const char* file = nullptr;
  uint32_t line = 0;
  const char* type = nullptr;  // of an exception
};

// Writes down how the test fails, before anything can end the process.
void capture_failure(protocol::FailureKind kind, const StackSnapshot& stack,
                     const FailureText& text = {});

// The same for a framework's reporter, or a fatal signal, that was interrupted here.
void capture_report(const ucontext_t* context);
// A signal that the program handles may be routine for it.
void capture_signal(int signal, const void* address, const ucontext_t* context, bool is_handled);

bool captures_failures();

// The stack of a thread that a probe has interrupted, numbered as those of calls are.
uint32_t number_of_interrupted_stack(const ucontext_t* context);

}  // namespace unflake::agent
