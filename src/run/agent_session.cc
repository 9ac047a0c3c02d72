#include "run/agent_session.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "protocol/agent_protocol.h"
#include "run/spawn.h"
#include "run/thread_stacks.h"
#include "symbols/loadable.h"
#include "trace/code_map.h"
#include "trace/lowering.h"
#include "util/paths.h"

namespace unflake {
namespace {

bool died_of_a_trap(const ProcessResult& process) {
  return process.end == ProcessResult::End::signalled && process.code == SIGTRAP;
}

bool is_of_first_process(const TracedFailure& failure, const Trace& trace) {
  if (failure.thread >= trace.threads.size()) return false;
  const uint32_t process = trace.threads[failure.thread].process;
  return process < trace.processes.size() && trace.processes[process].parent == no_index;
}

bool is_what_it_died_of(const TracedFailure& failure, int signal) {
  return (failure.kind == "signal" && failure.signal == signal) ||
         (failure.kind == "abort" && signal == SIGABRT);
}

// A handler that raises its signal again makes two of one crash; the first one tells where it was.
const TracedFailure* what_it_died_of(const Trace& trace, int signal) {
  const TracedFailure* found = nullptr;
  for (auto failure = trace.failures.rbegin(); failure != trace.failures.rend(); ++failure) {
    if (!is_of_first_process(*failure, trace)) continue;
    const bool is_same_thread = found == nullptr || failure->thread == found->thread;
    if (!is_what_it_died_of(*failure, signal) || !is_same_thread) break;
    found = &*failure;
  }
  return found;
}

}  // namespace

// The first run needs to know already which code of the executable is the user's own. The program
// of a test is project code wherever it is, unless it is the system's: a shell, an interpreter.
Result<void> AgentSession::meet_program(const Test& test, const AgentLoader& loader) {
  const auto path = program_of(test.command);
  if (!path) return path.error();
  if (const auto loadable = loader.check(*path); !loadable) return loadable.error();
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
       needed_libraries(program, variables_of(command)("LD_LIBRARY_PATH"))) {
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
    const auto found = find_agent_library();
    if (!found) return found.error();
    auto library = PreloadedLibrary::open(*found);
    if (!library) return library.error();
    library_.emplace(std::move(*library));
  }
  return library_->path();
}

Result<std::unique_ptr<AgentRun>> AgentSession::prepare(const Test& test, const Plan& plan) {
  const auto path = library();
  if (!path) return path.error();
  const NativeLoader loader(*path);
  if (const auto met = meet_program(test, loader); !met) return met.error();
  auto lowered = lower(plan, code_, tests_[to_string(test.id)]);
  if (!lowered) return lowered.error();
  auto memory = AgentMemory::create(*lowered);
  if (!memory) return memory.error();
  Loading loading = loader.loading(variables_of(test.command));
  loading.environment.push_back({protocol::memory_variable, memory->address()});
  return std::make_unique<AgentRun>(
      AgentRun{std::move(*lowered), std::move(*memory), std::move(loading)});
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

std::vector<ThreadAtEnd> AgentSession::stack_at_crash(const Trace& trace,
                                                      const ProcessResult& process) const {
  if (process.end != ProcessResult::End::signalled) return {};
  const TracedFailure* found = what_it_died_of(trace, process.code);
  if (found == nullptr) return {};
  const TracedThread& thread = trace.threads[found->thread];
  ThreadAtEnd stack{trace.processes[thread.process].pid, thread.tid, thread.name.text, {}, ""};
  for (const TracedFrame& frame : found->stack.frames) {
    const bool is_project =
        frame.image < trace.images.size() && trace.images[frame.image].is_project;
    for (const Frame& source : frame.source)
      stack.frames.push_back(frame_at_end(source, is_project, code_.policy()));
  }
  return {std::move(stack)};
}

}  // namespace unflake
