#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/test.h"
#include "protocol/agent_protocol.h"
#include "run/launch.h"
#include "trace/code_map.h"
#include "trace/raw_trace.h"
#include "trace/translation.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// The memory that one run shares with the agents in its processes. unflake itself never maps it:
// nothing that a test writes there can change while unflake reads it.
class AgentMemory {
 public:
  static Result<AgentMemory> create(const LoweredPlan& plan);

  // What the agent finds it by: GENERATION:PATH. Valid as long as this object lives.
  std::string address() const;

  // Copies what was written so far, then checks the copy: a process that outlives its run may
  // still write.
  Result<RawTrace> read() const;

  // Where whoever watches the test from outside finds protocol::Quiescence; 0: nowhere.
  uint64_t quiescence_offset() const;

  int file() const { return file_.get(); }
  size_t size() const { return header_.size; }

 private:
  AgentMemory() = default;

  UniqueFd file_;
  protocol::Header header_{};
  uint64_t made_ns_ = 0;
};

inline constexpr const char* agent_file_name = "libunflake-agent.so";

// Where a library of unflake is: next to the folder of the running program, as it was built or
// installed. For the agent's, UNFLAKE_AGENT_LIBRARY may name another one.
Result<std::string> find_library(const std::string& file_name);
Result<std::string> find_agent_library();

// A library under a name that LD_PRELOAD can hold: no spaces, no colons.
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
Variables variables_of(const Command& command);  // which must live as long, and so must the other
Variables variables_of(const Environment& environment);

// What makes a process load an agent.
struct Loading {
  std::vector<EnvChange> environment;
  std::vector<std::string> arguments;  // right after the program's name
};
void apply(const Loading& loading, Command& command);

// How agents of one kind get into a process.
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

// One run under the agent, from its start to its trace.
struct AgentRun {
  LoweredPlan plan;
  AgentMemory memory;
  Loading loading;
};

// Loads the agent into tests and remembers what their runs have shown: sites, threads and images,
// which later plans of the same test refer to by name.
class AgentSession {
 public:
  explicit AgentSession(const ProjectCode& policy) : code_(policy) {}

  // An error when the agent cannot be loaded into the test's program, or the plan names something
  // that no run of the test has shown.
  Result<std::unique_ptr<AgentRun>> prepare(const Test& test, const Plan& plan);

  Trace read(const Test& test, const AgentRun& run, const ProcessResult& process);

  // Of the thread hit by the signal that killed the process, when the trace has it.
  std::vector<ThreadAtEnd> stack_at_crash(const Trace& trace, const ProcessResult& process) const;

  // The path under which the agent can be preloaded.
  Result<std::string> library();

  // What the runs of this test have shown so far.
  const TestMemory& memory_of(const Test& test) { return tests_[to_string(test.id)]; }

 private:
  Result<void> meet_program(const Test& test, const AgentLoader& loader);
  void meet_libraries(const std::string& program, const Command& command);

  std::optional<PreloadedLibrary> library_;
  CodeMap code_;
  std::map<std::string, TestMemory> tests_;                    // by id
  std::map<std::string, TracedImage> programs_;                // by path, libraries too
  std::map<std::string, std::vector<std::string>> libraries_;  // of a program, that plans know
};

}  // namespace unflake
