#pragma once

#include <string>
#include <vector>

#include "model/test.h"
#include "util/result.h"

namespace unflake {

// What a command's process would find in this variable.
std::string variable_for(const Command& command, const char* name);

inline constexpr const char* agent_file_name = "libunflake-agent.so";

// Where a library of unflake is: beside the folder of the running program, as it was built or
// installed. For the agent's, UNFLAKE_AGENT_LIBRARY may name another one.
Result<std::string> find_library(const std::string& file_name);
Result<std::string> find_agent_library();

// A library under a name that LD_PRELOAD can hold: no blanks, no colons.
class PreloadedLibrary {
 public:
  static Result<PreloadedLibrary> open(const std::string& library);
  PreloadedLibrary(PreloadedLibrary&& other) noexcept;
  PreloadedLibrary& operator=(PreloadedLibrary&&) = delete;
  ~PreloadedLibrary();

  const std::string& path() const { return path_; }

 private:
  PreloadedLibrary() = default;

  std::string path_;
  std::string link_folder_;  // removed with this object; empty: no link was needed
};

// The changes to a command's environment that load the agent and show it its memory. What the
// command or unflake's own environment say already is kept.
std::vector<EnvChange> agent_environment(const Command& command, const std::string& library,
                                         const std::string& memory_address);

}  // namespace unflake
