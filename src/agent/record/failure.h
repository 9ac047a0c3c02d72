#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "agent/record/threads.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

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
