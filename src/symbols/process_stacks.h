#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "symbols/image.h"
#include "util/result.h"

namespace unflake {

struct ThreadFrame {
  std::string image;          // path; empty: in no file
  uint64_t address = 0;       // in the ELF file; of a caller, the byte before the return address
  std::vector<Frame> frames;  // innermost first; empty without an image that can be read
  bool interrupted = false;   // the innermost one, and what a signal's handler returns to
};

struct ThreadStack {
  pid_t tid = 0;
  std::string name;                 // as the kernel has it
  std::vector<ThreadFrame> frames;  // innermost first
  std::string why_empty;            // when the thread could not be looked at
};

struct StackLimits {
  size_t threads = 256;
  size_t frames = 128;  // of a thread
  std::chrono::milliseconds time{2000};
};

// The stacks of all threads of a process that runs, seen from outside: for a test that hangs, with
// whatever signals blocked and without the agent. It is stopped for a moment and then left as it
// was. The caller must be allowed to trace the process, as its ancestors are. An exit status that
// the process leaves behind meanwhile is left for its parent.
Result<std::vector<ThreadStack>> stacks_of(pid_t pid, const StackLimits& limits = {});

// The stack of one of its threads, without names. All stand still while it is read.
Result<ThreadStack> stack_of_thread(pid_t pid, pid_t tid, const StackLimits& limits);

// The process may be gone by then.
void give_names(ThreadStack& stack, std::chrono::milliseconds at_most);

}  // namespace unflake
