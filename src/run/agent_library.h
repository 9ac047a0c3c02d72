#pragma once

#include <string>
#include <vector>

#include "suite/test.h"
#include "util/result.h"

namespace unflake {

// What a command's process would find in this variable.
std::string variable_for(const Command& command, const char* name);

// Where libunflake-agent.so is: beside the folder of the running program, as it was built or
// installed, or where UNFLAKE_AGENT_LIBRARY says.
Result<std::string> find_agent_library();

// The agent's library under a name that LD_PRELOAD can hold: no blanks, no colons.
class AgentLibrary {
 public:
  static Result<AgentLibrary> open();
  static Result<AgentLibrary> open(const std::string& library);
  AgentLibrary(AgentLibrary&& other) noexcept;
  AgentLibrary& operator=(AgentLibrary&&) = delete;
  ~AgentLibrary();

  const std::string& path() const { return path_; }

 private:
  AgentLibrary() = default;

  std::string path_;
  std::string link_folder_;  // removed with this object; empty: no link was needed
};

// The changes to a command's environment that load the agent and show it its memory. What the
// command or unflake's own environment say already is kept.
std::vector<EnvChange> agent_environment(const Command& command, const std::string& library,
                                         const std::string& memory_address);

}  // namespace unflake
