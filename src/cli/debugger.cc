#include "cli/debugger.h"

#include <fmt/format.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "run/launch.h"
#include "suite/program.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

Result<std::string> tool(const std::string& name) {
  const auto program = find_program(name);
  if (program) return program;
  return usage_error(
      fmt::format("{} is not installed", name), "",
      fmt::format("install it (on Debian: apt install {}), or put it into PATH", name));
}

// What a framework has to be told so that a failing check stops in a debugger. Nothing here may
// lead it to the test by another path (as gtest_catch_exceptions=0 does): threads are named by the
// stacks that start them.
struct Stops {
  std::vector<std::string> arguments;
  std::vector<EnvChange> environment;
  std::vector<std::string> gdb_commands;
};

Stops stops_for(Framework framework, FailureKind failure) {
  Stops stops;
  switch (framework) {
    case Framework::gtest:
      stops.environment = {{"GTEST_BREAK_ON_FAILURE", "1"}};
      break;
    case Framework::catch2:
      stops.arguments = {"--break"};
      break;
    case Framework::boost_test:
      stops.arguments = {"--catch_system_errors=no"};
      // The first argument says how the check ended; 0: it failed.
      stops.gdb_commands = {"break boost::unit_test::framework::assertion_result if $edi == 0"};
      break;
    case Framework::doctest:  // stops by itself when it sees a debugger
    case Framework::ctest:
    case Framework::command:
      break;
  }
  if (failure == FailureKind::exit_status) stops.gdb_commands.push_back("catch syscall exit_group");
  if (failure == FailureKind::exception) stops.gdb_commands.push_back("catch throw");
  return stops;
}

// `env NAME=VALUE ...` before the program: only the test gets them, not the debugger or its shell.
std::string wrapper(const std::vector<EnvChange>& changes) {
  std::string removed, set;
  for (const EnvChange& change : changes) {
    if (change.value)
      set += " " + shell_quote(change.name + "=" + *change.value);
    else
      removed += " -u " + shell_quote(change.name);
  }
  return "env" + removed + set;
}

Command with_agent(Command command, const AgentRun& run) {
  apply(run.loading, command);
  return command;
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// With this process's own terminal. Signals that unflake blocks go to the child.
Result<int> run_in_foreground(const std::vector<std::string>& words, const std::string& cwd) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_init(&actions);
  sigset_t none, usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  for (const int signal : signals_ignored_by_supervisor) ::sigaddset(&usual, signal);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (!cwd.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, cwd.c_str());
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    return internal_error(fmt::format("cannot start it: {}", std::strerror(failed)), words.front());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status_of(status);
}

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string_view line : split_lines(text))
    if (!trim(line).empty()) last = trim(line);
  return last;
}

// Most virtual machines lack the counters that rr needs; it says so itself.
Result<void> check_rr(const std::string& rr, Launcher& launcher) {
  std::string folder = std::filesystem::temp_directory_path() / "unflake-rr-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr)
    return internal_error("cannot make a folder to try rr in", folder);
  Command trial;
  trial.argv = {rr, "record", "/bin/true"};
  trial.env = {{"_RR_TRACE_DIR", folder}};
  const ProcessResult result = launcher.launch(trial, 60s);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (result.end == ProcessResult::End::exited && result.code == 0) return {};
  const std::string reason = last_line(result.errors.text() + result.output.text());
  return usage_error("rr cannot record on this machine: " + printable(shorten(reason, 500)), rr,
                     "use --gdb, or record on a machine with performance counters");
}

}  // namespace

Result<int> debug_with_gdb(const Test& test, const AgentRun& run, FailureKind failure,
                           const std::vector<std::string>& gdb_arguments) {
  if (!run.plan.probes.empty())
    return usage_error(
        "the plan has delays at lines or functions, which work by traps that gdb "
        "takes for itself",
        to_string(test.id), "use it without --gdb, or with --rr");
  const auto gdb = tool("gdb");
  if (!gdb) return gdb.error();
  const auto program = program_of(test.command);
  if (!program) return program.error();
  const Stops stops = stops_for(test.framework, failure);
  const Command command = with_agent(test.command, run);
  std::vector<EnvChange> environment = command.env;
  environment.insert(environment.end(), stops.environment.begin(), stops.environment.end());
  std::vector<std::string> words = {*gdb,   "-q",
                                    "-iex", "set breakpoint pending on",
                                    "-iex", "set exec-wrapper " + wrapper(environment)};
  for (const std::string& order : stops.gdb_commands) words.insert(words.end(), {"-ex", order});
  words.insert(words.end(), gdb_arguments.begin(), gdb_arguments.end());
  words.insert(words.end(), {"--args", *program});
  words.insert(words.end(), command.argv.begin() + 1, command.argv.end());
  words.insert(words.end(), stops.arguments.begin(), stops.arguments.end());
  return run_in_foreground(words, test.command.cwd);
}

Result<int> record_with_rr(const Test& test, const AgentRun& run, Launcher& launcher) {
  const auto rr = tool("rr");
  if (!rr) return rr.error();
  if (const auto works = check_rr(*rr, launcher); !works) return works.error();
  const auto env = tool("env");
  if (!env) return env.error();
  std::vector<std::string> words = {*rr, "record", *env};
  const Command command = with_agent(test.command, run);
  for (const EnvChange& change : command.env)
    if (!change.value) words.insert(words.end(), {"-u", change.name});
  for (const EnvChange& change : command.env)
    if (change.value) words.push_back(change.name + "=" + *change.value);
  words.insert(words.end(), command.argv.begin(), command.argv.end());
  return run_in_foreground(words, test.command.cwd);
}

}  // namespace unflake
