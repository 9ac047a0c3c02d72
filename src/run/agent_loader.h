#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/test.h"
#include "protocol/agent_protocol.h"
#include "run/spawn.h"
#include "util/result.h"

namespace unflake {

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

// What a process would find in a variable of its environment; empty: nothing.
using Variables = std::function<std::string(const char* name)>;
Variables variables_of(const Command& command);  // which must live as long, as the other must
Variables variables_of(const Environment& environment);

// What makes a process load an agent.
struct Loading {
  std::vector<EnvChange> environment;
  std::vector<std::string> arguments;  // right behind the program's name
};
void apply(const Loading& loading, Command& command);

// How agents of one kind come into a process.
class AgentLoader {
 public:
  virtual ~AgentLoader() = default;

  virtual protocol::AgentKind kind() const = 0;
  // An error when such an agent cannot be loaded into this program.
  virtual Result<void> check(const std::string& program) const = 0;
  // What the process would find in its environment anyway is kept, and what loads the agent already
  // is not added again.
  virtual Loading loading(const Variables& before) const = 0;
};

// A library that the dynamic linker loads before all others.
class NativeLoader final : public AgentLoader {
 public:
  explicit NativeLoader(std::string library) : library_(std::move(library)) {}

  protocol::AgentKind kind() const override { return protocol::AgentKind::native; }
  Result<void> check(const std::string& program) const override;
  Loading loading(const Variables& before) const override;

 private:
  std::string library_;
};

// The only place that joins LD_PRELOAD. The user's own libraries stay: some insist on being first.
enum class Preloaded { first, last };
EnvChange preload(const Variables& before, const std::string& library, Preloaded where);

}  // namespace unflake
