#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbols/image.h"
#include "util/result.h"

namespace unflake {

// Threads of another process, stopped as long as this lives. Waits for none longer than the
// deadline: a thread inside of the kernel need not stop.
class Tracer {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  struct Thread {
    pid_t tid = 0;
    bool is_stopped = false;
    int signal = 0;  // that it was about to be given, and is given when it goes on
    std::string why_not;
  };

  Tracer(pid_t process, size_t most_threads, Deadline deadline);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer();

  const std::vector<Thread>& threads() const { return threads_; }
  std::optional<user_regs_struct> registers(pid_t tid) const;

 private:
  void seize_new(size_t most_threads);
  void wait_for_stops(Deadline deadline);
  void let_go(const Thread& thread) const;

  pid_t process_;
  bool is_child_;
  std::vector<Thread> threads_;
};

// A place in a process: in which file, and where there.
struct CodePlace {
  std::string image;
  uint64_t address = 0;
  bool interrupted = false;  // not in a call: the innermost one, or by a signal
};

// Walks the stacks of threads that a Tracer has stopped.
class Unwinder {
 public:
  Unwinder(pid_t process, const Tracer& tracer, Tracer::Deadline deadline);

  // Innermost first; of callers the byte before the return address. As much as there is when the
  // time is up.
  std::vector<CodePlace> stack_of(pid_t tid, size_t most_frames);

 private:
  struct End {
    void operator()(Dwfl* dwfl) const { ::dwfl_end(dwfl); }
  };
  struct Walk;
  static const Dwfl_Thread_Callbacks callbacks;

  CodePlace place_of(uint64_t address) const;

  pid_t process_;
  const Tracer& tracer_;
  Tracer::Deadline deadline_;
  std::unique_ptr<Dwfl, End> dwfl_;
};

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
// the process leaves meanwhile is left for its parent.
Result<std::vector<ThreadStack>> stacks_of(pid_t pid, const StackLimits& limits = {});

// The stack of one of its threads, without names. All are stopped while it is read.
Result<ThreadStack> stack_of_thread(pid_t pid, pid_t tid, const StackLimits& limits);

// The process may be gone by then.
void give_names(ThreadStack& stack, std::chrono::milliseconds at_most);

}  // namespace unflake
