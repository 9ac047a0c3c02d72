#include "run/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

extern char** environ;

namespace unflake {
namespace {

bool is_variable(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

class SpawnSetup {
 public:
  SpawnSetup(const std::string& cwd, const SpawnFiles& files) {
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_init(&actions_);
    sigset_t none, ignored;
    ::sigemptyset(&none);
    ::sigemptyset(&ignored);
    for (const int signal : signals_ignored_by_supervisor) ::sigaddset(&ignored, signal);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &ignored);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, files.output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, files.errors, STDERR_FILENO);
    if (files.passed >= 0)
      ::posix_spawn_file_actions_adddup2(&actions_, files.passed, files.passed_as);
    if (!cwd.empty()) ::posix_spawn_file_actions_addchdir_np(&actions_, cwd.c_str());
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

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

int spawn(const Command& command, Environment& environment, const SpawnFiles& files, pid_t& pid) {
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const SpawnSetup setup(command.cwd, files);
  const int code = ::posix_spawnp(&pid, argv[0], setup.actions(), setup.attributes(), argv.data(),
                                  environment.get());
  if (code != ENOEXEC) return code;
  std::string shell = "/bin/sh";  // a script that does not say what it is for: as a shell would
  argv.insert(argv.begin(), shell.data());
  return ::posix_spawn(&pid, shell.c_str(), setup.actions(), setup.attributes(), argv.data(),
                       environment.get());
}

void limit_core_dumps(bool allowed) {
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = allowed ? limit.rlim_max : 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace unflake
