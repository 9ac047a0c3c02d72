#pragma once

#include "util/unique_fd.h"

namespace unflake {

// The one for whom a process is run.
class Control {
 public:
  virtual ~Control() = default;
  virtual int fd() const = 0;            // readable when there is something to read
  virtual bool read_word_to_stop() = 0;  // reads it; whether it was the word to stop
  // What the leftovers of a finished process write to: with nobody to read, it would kill them.
  virtual void take_over(UniqueFd output) = 0;
};

}  // namespace unflake
