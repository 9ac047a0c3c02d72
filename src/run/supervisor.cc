#include "run/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/launch.h"
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

namespace {

constexpr char supervisor_launch = 'L';
constexpr char supervisor_cancel = 'C';

// The terminal's signals are for unflake, which tells the supervisor what to do.
void leave_signals_to_unflake() {
  ::setsid();
  for (const int signal : signals_ignored_by_supervisor) ::signal(signal, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // inherited as ignored, it would make every wait fail
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// An inherited end of another supervisor's socket would keep that one from seeing unflake die.
int keep_only(int socket) {
  constexpr int kept = STDERR_FILENO + 1;
  if (socket != kept) ::dup2(socket, kept);
  ::close_range(kept + 1, ~0U, 0);
  ::fcntl(kept, F_SETFD, FD_CLOEXEC);
  return kept;
}

// What unflake has said and the supervisor has not done yet.
class Orders : public Control {
 public:
  explicit Orders(int socket) : socket_(socket) {}

  int fd() const override { return socket_; }

  // Stopping means everything that was ordered so far. With unflake gone the socket stays
  // readable, so the second request, which kills, follows at once.
  bool read_word_to_stop() override {
    if (read_word() == supervisor_launch) return false;
    dropped_ += launches_.size();
    launches_.clear();
    return true;
  }

  void take_over(UniqueFd output) override { outputs_.push_back(std::move(output)); }

  const Launch* peek() const { return launches_.empty() ? nullptr : &launches_.front(); }

  // A request to stop that finds nothing to stop came too late.
  std::optional<Launch> next() {
    while (launches_.empty() && !gone_) {
      wait_and_drain();
      read_word();
    }
    if (gone_) return std::nullopt;
    Launch launch = std::move(launches_.front());
    launches_.pop_front();
    return launch;
  }

  size_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  void wait_and_drain() {
    std::vector<pollfd> watched{{socket_, POLLIN, 0}};
    for (const UniqueFd& output : outputs_) watched.push_back({output.get(), POLLIN, 0});
    while (watched[0].revents == 0 && ::poll(watched.data(), watched.size(), -1) >= 0)
      for (pollfd& output : std::span(watched).subspan(1))
        if (output.revents && !discard(output.fd)) output.fd = -1;
  }

  static bool discard(int fd) {
    std::array<char, 4096> bytes;
    return ::read(fd, bytes.data(), bytes.size()) > 0;
  }

  char read_word() {
    char word = 0;
    ssize_t size = 0;
    while ((size = ::recv(socket_, &word, 1, 0)) < 0 && errno == EINTR) {
    }
    auto message = size == 1 && word == supervisor_launch ? receive_message(socket_) : std::nullopt;
    if (message) launches_.push_back(decode_launch(*message));
    gone_ = size != 1 || (word == supervisor_launch && !message);
    return gone_ ? supervisor_cancel : word;
  }

  const int socket_;
  std::deque<Launch> launches_;
  std::vector<UniqueFd> outputs_;
  size_t dropped_ = 0;
  bool gone_ = false;
};

ProcessResult never_started() {
  ProcessResult result;
  result.end = ProcessResult::End::cancelled;
  return result;
}

// Runs what is ordered and reports how it ended. Whoever repeats a short test waits for the next
// start more than for the last result, so a result may be sent when the next process runs. Not one
// that takes long to send, nor after another test: if that one kills us, this one is blamed.
class Service {
 public:
  explicit Service(int socket) : socket_(socket), orders_(socket) {}

  bool serve_next() {
    if (!may_wait()) tell();
    const auto launch = heard_ ? orders_.next() : std::nullopt;
    if (!launch) return false;
    command_ = launch->command.argv;
    ProcessResult result = run_process(*launch, orders_, servers_, crashes_, [this] { tell(); });
    tell();  // it may not have been started
    untold_ = std::move(result);
    for (size_t left = orders_.take_dropped(); left > 0; --left) {
      tell();
      untold_ = never_started();
    }
    return heard_;
  }

 private:
  bool may_wait() const {
    constexpr size_t soon_told = 64 * 1024;
    const Launch* next = orders_.peek();
    if (next == nullptr || !untold_ || next->command.argv != command_) return false;
    const size_t size = untold_->output.head.size() + untold_->output.tail.size() +
                        untold_->errors.head.size() + untold_->errors.tail.size();
    return size < soon_told && next->fork_server.empty() && next->conditions == Conditions{};
  }

  void tell() {
    const auto result = std::exchange(untold_, std::nullopt);
    if (result && heard_) heard_ = send_message(socket_, encode(*result));
  }

  const int socket_;
  Orders orders_;
  const CrashWatch crashes_;
  ForkServers servers_{crashes_};
  std::optional<ProcessResult> untold_;
  std::vector<std::string> command_;  // whose result that is
  bool heard_ = true;                 // unflake is alive
};

// noexcept: an exception must not unwind into unflake's own frames, which this is a copy of.
[[noreturn]] void serve(int socket) noexcept {
  leave_signals_to_unflake();
  socket = keep_only(socket);
  ::prctl(PR_SET_NAME, "unflake-run");
  adopt_orphans();
  Service service(socket);
  while (service.serve_next()) {
  }
  if (has_descendants({})) kill_all_descendants();
  ::_exit(0);
}

}  // namespace

Result<Supervisor> start_supervisor() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return internal_error(fmt::format("cannot make a socket: {}", std::strerror(errno)), "",
                          "raise the limit on open files (ulimit -n) or lower --jobs");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return internal_error(fmt::format("cannot start a process: {}", std::strerror(errno)), "",
                          "raise the limit on processes (ulimit -u) or lower --jobs");
  }
  if (pid == 0) serve(theirs.get());
  return Supervisor{pid, std::move(ours)};
}

bool Supervisor::launch(const std::string& launch) {
  return ::send(socket.get(), &supervisor_launch, 1, MSG_NOSIGNAL | MSG_MORE) == 1 &&
         send_message(socket.get(), launch);
}

bool Supervisor::cancel() {
  return ::send(socket.get(), &supervisor_cancel, 1, MSG_NOSIGNAL) == 1;
}

std::optional<ProcessResult> Supervisor::receive() {
  const auto message = receive_message(socket.get());
  if (!message) return std::nullopt;
  return decode_process_result(*message);
}

}  // namespace unflake
