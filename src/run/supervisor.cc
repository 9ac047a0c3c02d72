#include "run/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "run/launch.h"
#include "run/process_tree.h"

namespace unflake {
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
