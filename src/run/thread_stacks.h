#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "protocol/preload_protocol.h"
#include "run/launch.h"
#include "symbols/project_code.h"
#include "util/files.h"

namespace unflake {

// For people, and for the failure's signature, whoever has walked the stack.
ThreadAtEnd::Frame frame_at_end(const Frame& frame, bool is_project_image,
                                const ProjectCode& policy);

// Where the threads of a test that ran out of time are, before it is killed: of its first process,
// then of everything else below the calling supervisor, these excepted. Bounded in time and size.
std::vector<ThreadAtEnd> stacks_at_timeout(pid_t first, const std::set<pid_t>& others,
                                           const ProjectCodeRules& code);

// Where a thread is that is about to die of a signal, and may die as soon as that was seen.
std::vector<ThreadAtEnd> stack_at_crash(const protocol::CrashNotice& notice,
                                        const ProjectCodeRules& code,
                                        const std::function<void()>& let_die);

// A supervisor's side of protocol/preload_protocol.h: learns of a process that is about to die of a
// signal, which then waits for its stack to be read. Without descriptors it hears nothing.
class CrashWatch {
 public:
  CrashWatch();

  // Makes a process with this environment load the library, and report its crash here. None when
  // the library's path is empty. It comes after the user's own: some insist on being the first.
  void load(Environment& environment, const std::string& library) const;

  int fd() const { return notices_.get(); }  // readable when a process waits; -1: never
  std::optional<protocol::CrashNotice> read() const;
  void let_die() const;
  // What is left of a process that is gone.
  void forget() const;

 private:
  UniqueFd notices_;       // a signalfd
  UniqueFd answers_;       // the end that the process also opens
  UniqueFd answers_here_;  // kept open, or opening the other end would wait
};

}  // namespace unflake
