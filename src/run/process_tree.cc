#include "run/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
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
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "util/files.h"

namespace unflake {
namespace {

// The command name in /proc/PID/stat is the process's own choice and may hold any character, so
// the fields are those after the last closing parenthesis.
pid_t parent_of(pid_t pid) {
  const UniqueFd file(
      ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return -1;
  char buffer[512];
  const ssize_t size = ::read(file.get(), buffer, sizeof buffer - 1);
  if (size <= 0) return -1;
  buffer[size] = '\0';
  const char* behind_name = std::strrchr(buffer, ')');
  pid_t parent = -1;
  if (!behind_name || std::sscanf(behind_name, ") %*c %d", &parent) != 1) return -1;
  return parent;
}

struct Process {
  pid_t pid;
  pid_t parent;
};

std::vector<Process> all_processes() {
  std::vector<Process> all;
  for (const pid_t pid : numbered_entries("/proc")) all.push_back({pid, parent_of(pid)});
  return all;
}

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  for (const Process& process : all_processes())
    if (process.parent == ::getpid()) children.push_back(process.pid);
  return children;
}

// A process that is stuck in the kernel does not die at once; nobody waits for it forever.
void wait_for_death(pid_t pid) {
  const UniqueFd handle = open_pidfd(pid);
  if (!handle) return;
  pollfd dies{handle.get(), POLLIN, 0};
  ::poll(&dies, 1, 2000);
}

bool is_dead_and_reaped(pid_t child) {
  return ::waitpid(child, nullptr, WNOHANG) == child;
}

// The kernel's own list, where it is built to give one: looking through all of /proc takes longer
// than a small test.
std::optional<std::vector<pid_t>> listed_children(pid_t process, pid_t thread) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/children", process, thread));
  if (!file) return std::nullopt;
  std::vector<pid_t> children;
  for (pid_t pid; file >> pid;) children.push_back(pid);
  return children;
}
std::optional<std::vector<pid_t>> listed_children() {
  return listed_children(::getpid(), ::getpid());
}

}  // namespace

std::vector<int> numbered_entries(const std::string& folder) {
  std::vector<int> all;
  DIR* entries = ::opendir(folder.c_str());
  if (!entries) return all;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    int number = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed != std::errc() || end != name.data() + name.size()) continue;
    all.push_back(number);
  }
  ::closedir(entries);
  return all;
}

bool adopt_orphans() {
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

std::vector<pid_t> all_descendants(const std::set<pid_t>& spared) {
  const std::vector<Process> all = all_processes();
  std::vector<pid_t> found{::getpid()};
  for (size_t i = 0; i < found.size() && found.size() <= all.size(); ++i)
    for (const Process& process : all)
      if (process.parent == found[i] && !spared.contains(process.pid)) found.push_back(process.pid);
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> listed_descendants(const std::set<pid_t>& spared) {
  if (!listed_children()) return all_descendants(spared);
  std::vector<pid_t> found{::getpid()};
  for (size_t i = 0; i < found.size(); ++i) {
    const pid_t process = found[i];
    for (const pid_t thread : numbered_entries(fmt::format("/proc/{}/task", process)))
      for (const pid_t child : listed_children(process, thread).value_or(std::vector<pid_t>()))
        if (!spared.contains(child)) found.push_back(child);
  }
  found.erase(found.begin());
  return found;
}

bool has_descendants(const std::set<pid_t>& spared) {
  if (spared.empty()) {
    siginfo_t unused;
    return ::waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
  }
  auto children = listed_children();
  if (!children) children = children_of_this_process();
  return std::ranges::any_of(*children, [&](pid_t pid) { return !spared.contains(pid); });
}

int kill_all_descendants(const std::set<pid_t>& spared) {
  std::set<pid_t> killed;
  // Each round kills one generation: the children of a killed process become ours. What is still
  // there after the dead were reaped is alive, even when its first thread has ended.
  for (int round = 0; round < 1000; ++round) {
    std::vector<pid_t> alive = children_of_this_process();
    std::erase_if(alive,
                  [&](pid_t pid) { return spared.contains(pid) || is_dead_and_reaped(pid); });
    const bool all_stuck =
        std::ranges::all_of(alive, [&](pid_t pid) { return killed.contains(pid); });
    if (alive.empty() || (all_stuck && round > 2)) break;
    for (const pid_t pid : alive) ::kill(pid, SIGKILL);
    for (const pid_t pid : alive) wait_for_death(pid);
    for (const pid_t pid : alive) ::waitpid(pid, nullptr, WNOHANG);
    killed.insert(alive.begin(), alive.end());
  }
  return static_cast<int>(killed.size());
}

}  // namespace unflake
