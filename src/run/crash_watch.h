#pragma once

#include <optional>
#include <string>

#include "protocol/crash_protocol.h"
#include "run/spawn.h"
#include "util/unique_fd.h"

namespace unflake {

// A supervisor's side of protocol/crash_protocol.h: hears of a process that is about to die of a
// signal, which then waits for its stack to be read. Without descriptors it hears nothing.
class CrashWatch {
 public:
  CrashWatch();

  // Makes a process with this environment load the library, and tell of its crash here. None when
  // the library's path is empty. It comes behind the user's own: some insist on being the first.
  void load(Environment& environment, const std::string& library) const;

  int fd() const { return notices_.get(); }  // readable when a process waits; -1: never
  std::optional<protocol::CrashNotice> read() const;
  void let_die() const;
  // What is left of a process that is gone.
  void forget() const;

 private:
  UniqueFd notices_;       // a signalfd
  UniqueFd answers_;       // the end that the process opens, too
  UniqueFd answers_here_;  // kept open, or opening the other end would wait
};

}  // namespace unflake
