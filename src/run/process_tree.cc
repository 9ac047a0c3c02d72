#include "run/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "util/pidfd.h"

namespace unflake {
namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
};

// The command name in /proc/PID/stat is the process's own choice and may hold any character, so
// the fields are those behind the last closing parenthesis.
std::optional<Stat> read_stat(pid_t pid) {
  const UniqueFd file(
      ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char buffer[512];
  const ssize_t size = ::read(file.get(), buffer, sizeof buffer - 1);
  if (size <= 0) return std::nullopt;
  buffer[size] = '\0';
  const char* behind_name = std::strrchr(buffer, ')');
  Stat stat;
  if (!behind_name || std::sscanf(behind_name, ") %c %d", &stat.state, &stat.parent) != 2)
    return std::nullopt;
  return stat;
}

std::vector<pid_t> living_children() {
  std::vector<pid_t> children;
  DIR* proc = ::opendir("/proc");
  if (!proc) return children;
  while (const dirent* entry = ::readdir(proc)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed != std::errc() || end != name.data() + name.size()) continue;
    const auto stat = read_stat(pid);
    if (stat && stat->parent == ::getpid() && stat->state != 'Z') children.push_back(pid);
  }
  ::closedir(proc);
  return children;
}

// A process that is stuck in the kernel does not die at once; nobody waits for it for ever.
void wait_for_death(pid_t pid) {
  const UniqueFd handle = open_pidfd(pid);
  if (!handle) return;
  pollfd dies{handle.get(), POLLIN, 0};
  ::poll(&dies, 1, 2000);
}

void reap_the_dead() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

bool adopt_orphans() {
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

int kill_all_descendants() {
  std::set<pid_t> killed;
  // Each round kills one generation: the children of a killed process become ours.
  for (int round = 0; round < 1000; ++round) {
    reap_the_dead();
    siginfo_t unused;
    if (::waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) break;
    const std::vector<pid_t> alive = living_children();
    const bool all_stuck =
        std::ranges::all_of(alive, [&](pid_t pid) { return killed.contains(pid); });
    if (all_stuck && round > 2) break;
    for (const pid_t pid : alive) ::kill(pid, SIGKILL);
    for (const pid_t pid : alive) wait_for_death(pid);
    killed.insert(alive.begin(), alive.end());
  }
  return static_cast<int>(killed.size());
}

}  // namespace unflake
