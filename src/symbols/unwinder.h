#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "symbols/tracer.h"

namespace unflake {

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

  // Innermost first; of callers the byte before the return address. What there is of it when the
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

}  // namespace unflake
