#include "run/launch.h"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "suite/program.h"

extern char** environ;

namespace unflake {
namespace {

void add_output(WireWriter& out, const CapturedOutput& output) {
  out.add(std::string_view(output.head));
  out.add(std::string_view(output.tail));
  out.add(output.total);
}

CapturedOutput read_output(WireReader& in) {
  CapturedOutput output;
  output.head = in.text();
  output.tail = in.text();
  output.total = in.number<uint64_t>();
  return output;
}

void add_stacks(WireWriter& out, const std::vector<ThreadAtEnd>& threads) {
  out.add(threads.size());
  for (const ThreadAtEnd& thread : threads) {
    out.add(thread.pid);
    out.add(thread.tid);
    out.add(std::string_view(thread.name));
    out.add(std::string_view(thread.why_empty));
    out.add(std::string_view(thread.call));
    out.add(thread.frames.size());
    for (const ThreadAtEnd::Frame& frame : thread.frames) {
      out.add(std::string_view(frame.function));
      out.add(std::string_view(frame.file));
      out.add(frame.line);
      out.add(frame.is_project);
    }
  }
}

ThreadAtEnd read_stack(WireReader& in) {
  ThreadAtEnd thread;
  thread.pid = in.number<int>();
  thread.tid = in.number<int>();
  thread.name = in.text();
  thread.why_empty = in.text();
  thread.call = in.text();
  for (size_t left = in.number<size_t>(); left > 0 && in.ok(); --left) {
    ThreadAtEnd::Frame& frame = thread.frames.emplace_back();
    frame.function = in.text();
    frame.file = in.text();
    frame.line = in.number<int>();
    frame.is_project = in.number<bool>();
  }
  return thread;
}

using End = ProcessResult::End;

int number_of(End end) {
  switch (end) {
    case End::exited:
      return 1;
    case End::signalled:
      return 2;
    case End::timed_out:
      return 3;
    case End::cancelled:
      return 4;
    case End::not_started:
      return 5;
  }
  return 0;
}

// A message that was torn says nothing of a start.
End read_end(WireReader& in) {
  const int number = in.number<int>();
  for (const End end : {End::exited, End::signalled, End::timed_out, End::cancelled})
    if (number_of(end) == number) return end;
  return End::not_started;
}

}  // namespace

std::string encode(const Launch& launch) {
  WireWriter out;
  out.add(launch.command.argv);
  out.add(launch.command.env.size());
  for (const EnvChange& change : launch.command.env) {
    out.add(std::string_view(change.name));
    out.add(change.value.has_value());
    out.add(std::string_view(change.value.value_or("")));
  }
  out.add(std::string_view(launch.command.cwd));
  out.add(launch.timeout);
  out.add(launch.grace);
  out.add(launch.limits.head);
  out.add(launch.limits.tail);
  out.add(launch.limits.split_errors);
  out.add(launch.core_dumps);
  out.add(launch.keep_leftovers);
  out.add(std::string_view(launch.project_code.root));
  out.add(launch.project_code.project);
  out.add(launch.project_code.system);
  out.add(std::string_view(launch.fork_server));
  out.add(std::string_view(launch.shared_probes));
  out.add(std::string_view(launch.crash_library));
  for_each_field(launch.conditions, [&](const ConditionField&, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const std::string&>)
      out.add(std::string_view(value));
    else
      out.add(value);
  });
  out.add(std::string_view(launch.world_library));
  out.add(launch.fixed_addresses);
  out.add(std::string_view(launch.agent_memory));
  out.add(launch.quiescence_offset);
  out.add(launch.holds);
  out.add(launch.slot);
  return out.bytes();
}

Launch decode_launch(std::string_view bytes) {
  WireReader in(bytes);
  Launch launch;
  launch.command.argv = in.texts();
  for (size_t left = in.number<size_t>(); left > 0 && in.ok(); --left) {
    EnvChange change{in.text(), std::nullopt};
    const bool has_value = in.number<bool>();
    std::string value = in.text();
    if (has_value) change.value = std::move(value);
    launch.command.env.push_back(std::move(change));
  }
  launch.command.cwd = in.text();
  launch.timeout = in.duration();
  launch.grace = in.duration();
  launch.limits.head = in.number<size_t>();
  launch.limits.tail = in.number<size_t>();
  launch.limits.split_errors = in.number<bool>();
  launch.core_dumps = in.number<bool>();
  launch.keep_leftovers = in.number<bool>();
  launch.project_code.root = in.text();
  launch.project_code.project = in.texts();
  launch.project_code.system = in.texts();
  launch.fork_server = in.text();
  launch.shared_probes = in.text();
  launch.crash_library = in.text();
  for_each_field(launch.conditions, [&](const ConditionField&, auto& value) {
    if constexpr (std::is_same_v<decltype(value), std::string&>)
      value = in.text();
    else
      value = in.number<std::remove_reference_t<decltype(value)>>();
  });
  launch.world_library = in.text();
  launch.fixed_addresses = in.number<bool>();
  launch.agent_memory = in.text();
  launch.quiescence_offset = in.number<uint64_t>();
  launch.holds = in.number<bool>();
  launch.slot = in.number<size_t>();
  return launch;
}

std::string encode(const ProcessResult& result) {
  WireWriter out;
  out.add(number_of(result.end));
  out.add(result.code);
  out.add(std::string_view(result.error));
  out.add(result.started.time_since_epoch().count());
  out.add(result.duration);
  out.add(result.user_cpu);
  out.add(result.system_cpu);
  out.add(result.max_rss_kib);
  out.add(result.dumped_core);
  out.add(result.leftovers);
  add_stacks(out, result.thread_stacks);
  out.add(result.deadlock.size());
  for (const ProcessResult::Waiting& waiting : result.deadlock) {
    out.add(waiting.pid);
    out.add(waiting.tid);
    out.add(waiting.object);
    out.add(waiting.for_tid);
  }
  out.add(std::string_view(result.no_fork_server));
  add_output(out, result.output);
  add_output(out, result.errors);
  return out.bytes();
}

ProcessResult decode_process_result(std::string_view bytes) {
  WireReader in(bytes);
  ProcessResult result;
  result.end = read_end(in);
  result.code = in.number<int>();
  result.error = in.text();
  using Clock = std::chrono::system_clock;
  result.started = Clock::time_point(Clock::duration(in.number<Clock::rep>()));
  result.duration = in.duration();
  result.user_cpu = in.duration();
  result.system_cpu = in.duration();
  result.max_rss_kib = in.number<int64_t>();
  result.dumped_core = in.number<bool>();
  result.leftovers = in.number<int>();
  for (size_t left = in.number<size_t>(); left > 0 && in.ok(); --left)
    result.thread_stacks.push_back(read_stack(in));
  for (size_t left = in.number<size_t>(); left > 0 && in.ok(); --left) {
    ProcessResult::Waiting& waiting = result.deadlock.emplace_back();
    waiting.pid = in.number<int>();
    waiting.tid = in.number<int>();
    waiting.object = in.number<uint64_t>();
    waiting.for_tid = in.number<int>();
  }
  result.no_fork_server = in.text();
  result.output = read_output(in);
  result.errors = read_output(in);
  return result;
}

namespace {

bool send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* data, size_t size) {
  while (size > 0) {
    const ssize_t received = ::recv(socket, data, size, MSG_WAITALL);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    data += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

}  // namespace

bool send_message(int socket, const std::string& bytes) {
  const size_t size = bytes.size();
  std::string framed(reinterpret_cast<const char*>(&size), sizeof size);
  framed += bytes;
  return send_all(socket, framed.data(), framed.size());
}

std::optional<std::string> receive_message(int socket) {
  size_t size = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  std::string bytes(size, '\0');
  if (!receive_all(socket, bytes.data(), size)) return std::nullopt;
  return bytes;
}

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
           const ChildStep& step, pid_t supervisor) {
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
  if (step)
    if (const int code = step(); code != 0) return code;
  if (!cwd.empty() && ::chdir(cwd.c_str()) != 0) return errno;
  ::execvpe(argv[0], argv, environment);
  return errno;
}

// Like posix_spawn, which can neither ask for the death signal nor do without its own stack.
int start(char** argv, char** environment, const std::string& cwd, const SpawnFiles& files,
          const ChildStep& step, pid_t& pid) {
  const pid_t supervisor = ::getpid();
  volatile int error = 0;
  const pid_t child = ::vfork();
  if (child < 0) return errno;
  if (child == 0) {
    error = become(argv, environment, cwd, files, step, supervisor);
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
          const ChildStep& step, pid_t& pid) {
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return start(argv.data(), environment.get(), command.cwd, files, step, pid);
}

int fix_addresses() {
  ::personality(ADDR_NO_RANDOMIZE);
  return 0;
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
