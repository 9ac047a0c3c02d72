#include "agent/record/sites.h"

#include <string.h>

#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/threads.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {
namespace {

using namespace protocol;

template <size_t size>
void copy_text(char (&out)[size], const char* text) {
  if (text == nullptr) return;
  const size_t length = strnlen(text, size - 1);
  memcpy(out, text, length);
  out[length] = '\0';
}

Failure* next_failure() {
  const uint32_t number = memory().failures.used->add(1);
  if (number < memory().failures.count) return &memory().failures[number];
  memory().dropped[dropped_failures].add(1);
  return nullptr;
}

void write_stack(Failure& failure, const StackSnapshot& stack) {
  failure.frame_count = stack.count;
  for (uint32_t i = 0; i < stack.count; ++i)
    failure.frames[i] = address_in(stack.frames[i], image_at(stack.frames[i]));
}

Failure* begin_failure(FailureKind kind, const StackSnapshot& stack) {
  Failure* failure = next_failure();
  if (failure == nullptr) return nullptr;
  failure->kind = kind;
  failure->thread = this_thread.number;
  failure->at_ns = traced_now();
  write_stack(*failure, stack);
  return failure;
}

// What a handler's own stack adds lies above the interrupted instruction.
void take_interrupted_stack(const ucontext_t* context, StackSnapshot& stack) {
  take_stack(stack);
  const uint64_t address = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RIP]);
  for (uint32_t i = 0; i < stack.count; ++i) {
    if (stack.frames[i] != address) continue;
    stack.count -= i;
    memmove(stack.frames, stack.frames + i, stack.count * sizeof stack.frames[0]);
    return;
  }
}

}  // namespace

bool captures_failures() {
  return attached() && (plan().flags & PlanFlags::capture_failures) != 0;
}

void capture_failure(FailureKind kind, const StackSnapshot& stack, const FailureText& text) {
  Failure* failure = begin_failure(kind, stack);
  if (failure == nullptr) return;
  copy_text(failure->message, text.message);
  copy_text(failure->file, text.file);
  copy_text(failure->type, text.type);
  failure->line = text.line;
  failure->committed.store(1);
}

// A return address is after the call; so that this one is, too.
uint32_t number_of_interrupted_stack(const ucontext_t* context) {
  StackSnapshot stack;
  take_interrupted_stack(context, stack);
  if (stack.count == 0) return none;
  ++stack.frames[0];
  return number_of_stack(stack);
}

void capture_report(const ucontext_t* context) {
  if (!captures_failures()) return;
  StackSnapshot stack;
  take_interrupted_stack(context, stack);
  capture_failure(FailureKind::assertion, stack);
  const ThreadExtra* extra = this_thread.extra;
  if (extra == nullptr || extra->thrown.count == 0) return;
  capture_failure(FailureKind::thrown_before, extra->thrown, {.type = extra->thrown_type});
}

void capture_signal(int signal, const void* address, const ucontext_t* context, bool is_handled) {
  if (!captures_failures() || this_thread.aborts) return;
  if (is_handled && memory().failures.used->load() >= memory().failures.count / 2) return;
  Guard guard;
  if (!guard || !meet_this_thread()) return;
  StackSnapshot stack;
  take_interrupted_stack(context, stack);
  Failure* failure = begin_failure(FailureKind::signal, stack);
  if (failure == nullptr) return;
  failure->signal = signal;
  failure->fault_address = reinterpret_cast<uint64_t>(address);
  failure->committed.store(1);
}

}  // namespace unflake::agent
