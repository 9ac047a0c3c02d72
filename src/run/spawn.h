#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/test.h"
#include "util/result.h"

namespace unflake {

// A supervisor ignores these, and a process that it starts does not.
inline constexpr std::array signals_ignored_by_supervisor{SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                                          SIGPIPE, SIGUSR1, SIGUSR2};

// unflake's environment with some changes, in the form that exec wants.
class Environment {
 public:
  explicit Environment(const std::vector<EnvChange>& changes);
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void apply(const EnvChange& change);
  std::optional<std::string> value(std::string_view name) const;
  char** get() { return pointers_.data(); }  // ends with a null

 private:
  std::deque<std::string> storage_;  // pointers_ point into it
  std::vector<char*> pointers_;
};

struct SpawnFiles {
  int output = -1;
  int errors = -1;
  int passed = -1;  // one more, which gets the number `passed_as`
  int passed_as = -1;
};

// Starts a command in a session of its own, without input. Returns 0 or an errno.
// With fixed addresses the system does not move the program's code, stack and heap.
int spawn(const Command& command, Environment& environment, const SpawnFiles& files,
          bool fixed_addresses, pid_t& pid);

// In this process, for those that it will start.
void limit_core_dumps(bool allowed);

// The file that a command's process will execute, without links, as /proc/PID/exe shows it.
Result<std::string> program_of(const Command& command);

}  // namespace unflake
