#include "run/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "run/process_tree.h"
#include "run/run_process.h"
#include "run/wire.h"

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

// A cancelling word may cross the result of a run that was just over.
std::optional<std::string> next_launch(int socket) {
  char word = 0;
  do {
    const ssize_t size = ::recv(socket, &word, 1, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
  } while (word != supervisor_launch);
  return receive_message(socket);
}

[[noreturn]] void serve(int socket) {
  leave_signals_to_unflake();
  socket = keep_only(socket);
  ::prctl(PR_SET_NAME, "unflake-run");
  adopt_orphans();
  while (const auto message = next_launch(socket)) {
    const ProcessResult result = run_process(decode_launch(*message), socket);
    if (!send_message(socket, encode(result))) break;
  }
  kill_all_descendants();
  ::_exit(0);
}

}  // namespace

Result<Supervisor> start_supervisor() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return internal_error(fmt::format("no socket can be made: {}", std::strerror(errno)));
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return internal_error(fmt::format("no process can be made: {}", std::strerror(errno)), "",
                          "raise the limit on processes (ulimit -u) or lower --jobs");
  }
  if (pid == 0) serve(theirs.get());
  return Supervisor{pid, std::move(ours)};
}

bool Supervisor::launch(const Launch& launch) {
  return ::send(socket.get(), &supervisor_launch, 1, MSG_NOSIGNAL | MSG_MORE) == 1 &&
         send_message(socket.get(), encode(launch));
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
