#include "run/agent_session.h"

#include <csignal>

#include "run/command_program.h"
#include "symbols/loadable.h"
#include "symbols/needed_libraries.h"
#include "trace/assertion_reporters.h"
#include "trace/lowering.h"
#include "util/base_name.h"

namespace unflake {
namespace {

bool died_of_a_trap(const ProcessResult& process) {
  return process.end == ProcessResult::End::signalled && process.code == SIGTRAP;
}

}  // namespace

// The first run needs to know already which code of the executable is the user's own. The program
// of a test is project code wherever it is, unless it is the system's: a shell, an interpreter.
Result<void> AgentSession::meet_program(const Test& test) {
  const auto path = program_of(test.command);
  if (!path) return path.error();
  if (const auto loadable = check_loadable(*path); !loadable) return loadable.error();
  const auto [program, is_new] = programs_.try_emplace(*path);
  if (is_new) {
    const auto image = Image::open(*path);
    program->second = {*path, image ? (*image)->build_id() : "",
                       code_.policy().is_project_image(*path)};
    if (!image) program->second.is_project = false;  // a script
  }
  TestMemory& memory = tests_[to_string(test.id)];
  if (program->second.is_project) memory.images.try_emplace(*path, program->second);
  if (is_new) meet_libraries(*path, test.command);
  for (const std::string& library : libraries_[*path])
    memory.images.try_emplace(library, programs_[library]);
  return {};
}

void AgentSession::meet_libraries(const std::string& program, const Command& command) {
  for (const std::string& path :
       needed_libraries(program, variable_for(command, "LD_LIBRARY_PATH"))) {
    const bool is_project = code_.policy().is_project_image(path);
    if (!is_project && !is_framework_library(base_name(path))) continue;
    const auto image = Image::open(path);
    if (!image) continue;
    programs_[path] = {path, (*image)->build_id(), is_project};
    libraries_[program].push_back(path);
  }
}

Result<std::string> AgentSession::library() {
  if (!library_) {
    auto library = AgentLibrary::open();
    if (!library) return library.error();
    library_.emplace(std::move(*library));
  }
  return library_->path();
}

Result<std::unique_ptr<AgentRun>> AgentSession::prepare(const Test& test, const Plan& plan) {
  const auto path = library();
  if (!path) return path.error();
  if (const auto met = meet_program(test); !met) return met.error();
  auto lowered = lower(plan, code_, tests_[to_string(test.id)]);
  if (!lowered) return lowered.error();
  auto memory = AgentMemory::create(*lowered);
  if (!memory) return memory.error();
  auto environment = agent_environment(test.command, *path, memory->address());
  return std::make_unique<AgentRun>(
      AgentRun{std::move(*lowered), std::move(*memory), std::move(environment)});
}

Trace AgentSession::read(const Test& test, const AgentRun& run, const ProcessResult& process) {
  auto report = run.memory.read();
  if (report) {
    Trace trace = raise(std::move(*report), run.plan, code_, tests_[to_string(test.id)]);
    if (died_of_a_trap(process) && !run.plan.probes.empty())
      trace.problems.push_back(
          "the test died of SIGTRAP, by which probes work: a signal mask that the agent cannot see "
          "may have blocked it, and the failure may not be the test's own");
    return trace;
  }
  Trace nothing;
  nothing.problems.push_back(to_string(report.error()));
  nothing.interventions.resize(run.plan.rule_of.size());
  return nothing;
}

}  // namespace unflake
