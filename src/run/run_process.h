#pragma once

#include <array>
#include <csignal>

#include "run/launch.h"
#include "util/unique_fd.h"

namespace unflake {

// A supervisor ignores these, and a process that it starts does not.
inline constexpr std::array signals_ignored_by_supervisor{SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                                          SIGPIPE, SIGUSR1, SIGUSR2};

// The one for whom a process is run.
class Control {
 public:
  virtual ~Control() = default;
  virtual int fd() const = 0;            // readable when there is something to read
  virtual bool read_word_to_stop() = 0;  // reads it; whether it was the word to stop
  // What the leftovers of a finished process write to: with nobody to read, it would kill them.
  virtual void take_over(UniqueFd output) = 0;
};

// Starts the process in a session of its own, captures what it writes, ends it at its time-out or
// at a word from `control`, and kills what it leaves behind. Needs to be the only one in this
// process that has children.
ProcessResult run_process(const Launch& launch, Control& control);

}  // namespace unflake
