#include "support/test_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <map>

#include "util/unique_fd.h"

extern char** environ;

namespace unflake {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> environment_with(const std::vector<EnvChange>& changes) {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    values[text.substr(0, text.find('='))] = text;
  }
  for (const EnvChange& change : changes) {
    if (change.value)
      values[change.name] = change.name + "=" + *change.value;
    else
      values.erase(change.name);
  }
  std::vector<std::string> entries;
  for (const auto& [name, entry] : values) entries.push_back(entry);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Pipe {
  UniqueFd read, write;
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return;
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
};

int start(const Command& command, const Pipe& output, const Pipe& errors, pid_t& child) {
  std::vector<std::string> argv = command.argv, env = environment_with(command.env);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.write.get(), 2);
  if (!command.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.cwd.c_str());
  const int error = posix_spawnp(&child, argv[0].c_str(), &actions, nullptr,
                                 pointers_to(argv).data(), pointers_to(env).data());
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// False at the end of the stream.
bool drain(int fd, CapturedOutput& into) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count <= 0) return false;
  into.head.append(buffer.data(), static_cast<size_t>(count));
  into.total += static_cast<uint64_t>(count);
  return true;
}

// Reads both streams to their ends; false when the time was over first.
bool read_all(Pipe& output, Pipe& errors, Clock::time_point deadline, ProcessResult& result) {
  output.write.reset();
  errors.write.reset();
  pollfd polled[] = {{output.read.get(), POLLIN, 0}, {errors.read.get(), POLLIN, 0}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    if (poll(polled, 2, static_cast<int>(left.count())) <= 0) continue;
    if (polled[0].revents && !drain(polled[0].fd, result.output)) polled[0].fd = -1;
    if (polled[1].revents && !drain(polled[1].fd, result.errors)) polled[1].fd = -1;
  }
  return true;
}

}  // namespace

ProcessResult TestLauncher::launch(const Command& command, Duration timeout) {
  ProcessResult result;
  Pipe output, errors;
  pid_t child = -1;
  if (const int error = start(command, output, errors, child)) {
    result.end = ProcessResult::End::not_started;
    result.code = error;
    result.error = command.argv[0] + ": " + std::strerror(error);
    return result;
  }
  const bool in_time = read_all(output, errors, Clock::now() + timeout, result);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  result.end = !in_time              ? ProcessResult::End::timed_out
               : WIFSIGNALED(status) ? ProcessResult::End::signalled
                                     : ProcessResult::End::exited;
  result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace unflake
