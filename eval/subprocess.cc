#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "subprocess.h"
#include "surroundings.h"
#include "util/files.h"

namespace unflake::eval {
namespace {

constexpr std::chrono::seconds grace{20};  // between SIGTERM and SIGKILL

Result<pid_t> spawn_in(const std::vector<std::string>& words, const std::string& folder) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "stdout", flags, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "stderr", flags, 0600);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0)
    return internal_error(std::string("cannot start it: ") + std::strerror(failed), words.front());
  return pid;
}

bool ends_within(const UniqueFd& process, Duration at_most) {
  pollfd waited{process.get(), POLLIN, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(at_most);
  return ::poll(&waited, 1, static_cast<int>(limit.count())) == 1;
}

}  // namespace

Result<ToolResult> run_tool(const std::vector<std::string>& words, const std::string& folder,
                            Duration at_most) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const auto pid = spawn_in(words, folder);
  if (!pid) return pid.error();
  const UniqueFd process = open_pidfd(*pid);
  ToolResult result;
  if (!ends_within(process, at_most)) {
    result.timed_out = true;
    ::kill(*pid, SIGTERM);
    if (!ends_within(process, grace)) ::kill(*pid, SIGKILL);
  }
  int status = 0;
  if (::waitpid(*pid, &status, 0) != *pid)
    return internal_error(std::string("waitpid: ") + std::strerror(errno), words.front());
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.elapsed = std::chrono::duration_cast<Duration>(Clock::now() - began);
  result.output = contents(folder + "/stdout");
  result.errors = contents(folder + "/stderr");
  return result;
}

}  // namespace unflake::eval
