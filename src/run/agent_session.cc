#include "run/agent_session.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "protocol/agent_protocol.h"
#include "run/launch.h"
#include "run/thread_stacks.h"
#include "symbols/loadable.h"
#include "trace/code_map.h"
#include "trace/translation.h"
#include "util/paths.h"
#include "util/result.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view divides_preloads = " :\t\n";

bool can_be_preloaded(const std::string& path) {
  return path.find_first_of(divides_preloads) == std::string::npos;
}

Result<std::string> make_link_folder() {
  std::error_code failed;
  std::string parent = fs::temp_directory_path(failed).string();
  if (failed || !can_be_preloaded(parent)) parent = "/tmp";
  std::string folder = parent + "/unflake-agent-XXXXXX";
  if (::mkdtemp(folder.data()) != nullptr) return folder;
  return internal_error(fmt::format("cannot make a folder: {}", ::strerror(errno)), parent,
                        "unflake needs one because its own path has a blank or a colon in it, "
                        "which LD_PRELOAD cannot hold");
}

}  // namespace

Result<std::string> find_library(const std::string& file_name) {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path prefix = program.parent_path().parent_path();
  for (const char* folder : {"lib", UNFLAKE_LIBDIR}) {
    const fs::path library = prefix / folder / file_name;
    if (fs::exists(library, failed)) return library.string();
  }
  return internal_error(fmt::format("{} is missing, which is loaded into tests", file_name),
                        (prefix / "lib").string(),
                        "install unflake again, with its bin and lib folders side by side");
}

Result<std::string> find_agent_library() {
  if (std::string other = environment_variable("UNFLAKE_AGENT_LIBRARY"); !other.empty())
    return other;
  return find_library(agent_file_name);
}

Result<PreloadedLibrary> PreloadedLibrary::open(const std::string& library) {
  PreloadedLibrary preloaded;
  preloaded.path_ = library;
  if (can_be_preloaded(library)) return preloaded;
  auto folder = make_link_folder();
  if (!folder) return folder.error();
  preloaded.link_folder_ = std::move(*folder);
  preloaded.path_ = preloaded.link_folder_ + "/" + fs::path(library).filename().string();
  std::error_code failed;
  fs::create_symlink(library, preloaded.path_, failed);
  if (failed)
    return internal_error("a library cannot be linked: " + failed.message(), preloaded.path_);
  return preloaded;
}

PreloadedLibrary::PreloadedLibrary(PreloadedLibrary&& other) noexcept
    : path_(std::move(other.path_)), link_folder_(std::exchange(other.link_folder_, "")) {}

PreloadedLibrary::~PreloadedLibrary() {
  std::error_code ignored;
  if (!link_folder_.empty()) fs::remove_all(link_folder_, ignored);
}

Variables variables_of(const Command& command) {
  return [&command](const char* name) {
    std::string value = environment_variable(name);
    for (const EnvChange& change : command.env)
      if (change.name == name) value = change.value.value_or("");
    return value;
  };
}

Variables variables_of(const Environment& environment) {
  return [&environment](const char* name) { return environment.value(name).value_or(""); };
}

void apply(const Loading& loading, Command& command) {
  command.env.insert(command.env.end(), loading.environment.begin(), loading.environment.end());
  if (!command.argv.empty())
    command.argv.insert(command.argv.begin() + 1, loading.arguments.begin(),
                        loading.arguments.end());
}

namespace {

bool is_entry(std::string_view list, std::string_view entry, std::string_view dividers) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(dividers), list.size());
    if (list.substr(0, end) == entry) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

EnvChange preload(const Variables& before, const std::string& library, Preloaded where) {
  const std::string others = before("LD_PRELOAD");
  if (others.empty()) return {"LD_PRELOAD", library};
  if (is_entry(others, library, divides_preloads)) return {"LD_PRELOAD", others};
  return {"LD_PRELOAD",
          where == Preloaded::first ? library + ":" + others : others + ":" + library};
}

Result<void> NativeLoader::check(const std::string& program) const {
  return check_loadable(program);
}

// gcc's ASan refuses to run after a preloaded library, though it does no harm there.
Loading NativeLoader::loading(const Variables& before) const {
  constexpr const char* allowed = "verify_asan_link_order=0";
  std::string options = before("ASAN_OPTIONS");
  if (!is_entry(options, allowed, ":"))
    options += options.empty() ? allowed : std::string(":") + allowed;
  return {{preload(before, library_, Preloaded::first), {"ASAN_OPTIONS", options}}, {}};
}

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

// A handler that raises its signal again makes two crashes of one; the first one says where it was.
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

// The first run already needs to know which code of the executable is the user's own. The program
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
