#include "run/spawn.h"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "suite/program.h"

extern char** environ;

namespace unflake {
namespace {

bool is_variable(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

void give(int from, int to) {
  if (from == to)
    ::fcntl(to, F_SETFD, 0);
  else
    ::dup2(from, to);
}

void restore_signals() {
  for (const int signal : signals_ignored_by_supervisor) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child, which shares the supervisor's memory until it executes the program. A supervisor
// that is killed cannot end its test any more, so the system does.
int become(char** argv, char** environment, const std::string& cwd, const SpawnFiles& files,
           bool fixed_addresses, pid_t supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) return ESRCH;
  ::setsid();
  restore_signals();
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0) return errno;
  give(input, STDIN_FILENO);
  give(files.output, STDOUT_FILENO);
  give(files.errors, STDERR_FILENO);
  if (files.passed >= 0) give(files.passed, files.passed_as);
  if (!cwd.empty() && ::chdir(cwd.c_str()) != 0) return errno;
  if (fixed_addresses) ::personality(ADDR_NO_RANDOMIZE);
  ::execvpe(argv[0], argv, environment);
  return errno;
}

// Like posix_spawn, which can neither ask for the death signal nor do without a stack of its own.
int start(char** argv, char** environment, const std::string& cwd, const SpawnFiles& files,
          bool fixed_addresses, pid_t& pid) {
  const pid_t supervisor = ::getpid();
  volatile int error = 0;
  const pid_t child = ::vfork();
  if (child < 0) return errno;
  if (child == 0) {
    error = become(argv, environment, cwd, files, fixed_addresses, supervisor);
    ::_exit(127);
  }
  pid = child;
  if (error != 0) ::waitpid(child, nullptr, 0);
  return error;
}

}  // namespace

Environment::Environment(const std::vector<EnvChange>& changes) {
  for (char** entry = environ; *entry; ++entry) pointers_.push_back(*entry);
  pointers_.push_back(nullptr);
  for (const EnvChange& change : changes) apply(change);
}

void Environment::apply(const EnvChange& change) {
  std::erase_if(pointers_, [&](const char* entry) {
    return entry == nullptr || is_variable(entry, change.name);
  });
  if (change.value) {
    storage_.push_back(change.name + "=" + *change.value);
    pointers_.push_back(storage_.back().data());
  }
  pointers_.push_back(nullptr);
}

std::optional<std::string> Environment::value(std::string_view name) const {
  const auto found = std::ranges::find_if(
      pointers_, [&](const char* entry) { return entry != nullptr && is_variable(entry, name); });
  if (found == pointers_.end()) return std::nullopt;
  return std::string(*found + name.size() + 1);
}

// A script that does not say what it is for is run by the shell, as execvpe does it.
int spawn(const Command& command, Environment& environment, const SpawnFiles& files,
          bool fixed_addresses, pid_t& pid) {
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return start(argv.data(), environment.get(), command.cwd, files, fixed_addresses, pid);
}

void limit_core_dumps(bool allowed) {
  static std::optional<bool> now;
  if (std::exchange(now, allowed) == allowed) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = allowed ? limit.rlim_max : 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

namespace fs = std::filesystem;

Result<std::string> program_of(const Command& command) {
  if (command.argv.empty()) return internal_error("there is no command to run");
  const std::string& word = command.argv[0];
  std::string path = word;
  if (word.find('/') == std::string::npos) {
    auto found = find_program(word);
    if (!found) return found.error();
    path = std::move(*found);
  } else if (word[0] != '/' && !command.cwd.empty()) {
    path = command.cwd + "/" + word;
  }
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? absolute_path(path) : real.string();
}

}  // namespace unflake
