#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/test.h"
#include "run/agent_loader.h"
#include "run/agent_memory.h"
#include "trace/code_map.h"
#include "trace/raising.h"
#include "util/result.h"

namespace unflake {

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

  // Of the thread that the signal hit of which the process died, when the trace has it.
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
  std::map<std::string, RawImage> programs_;                   // by path, libraries too
  std::map<std::string, std::vector<std::string>> libraries_;  // of a program, that plans know
};

}  // namespace unflake
