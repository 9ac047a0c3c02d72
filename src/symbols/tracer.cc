#include "symbols/tracer.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace unflake {
namespace {

constexpr int rounds = 8;                   // of looking for threads that were started meanwhile
constexpr int most_tries_to_let_go = 2000;  // about half a second

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code failed;
  const std::filesystem::path folder = fmt::format("/proc/{}/task", process);
  std::filesystem::directory_iterator entries(folder, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed))
    threads.push_back(std::atoi(entries->path().filename().c_str()));
  return threads;
}

pid_t parent_of(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + std::strlen("PPid:"));
  return 0;
}

// 'Z' for one that has ended and 0 for one that is gone.
char state_of(pid_t process, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/stat", process, tid));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  return name_end == std::string::npos ? '\0' : line[name_end + 2];
}

bool has_ended(pid_t process, pid_t tid) {
  const char state = state_of(process, tid);
  return state == 0 || state == 'Z' || state == 'X';
}

constexpr char ended[] = "it has ended";

std::string why_not_traced(int error) {
  if (error == EPERM)
    return "it may not be traced: another tracer has it, or the system forbids it";
  if (error == ESRCH) return ended;
  return std::strerror(error);
}

// Takes only stops: the exit status belongs to the parent.
std::optional<int> stop_of(pid_t tid) {
  siginfo_t info{};
  const int failed = ::waitid(P_PID, tid, &info, WSTOPPED | WNOHANG | __WALL);
  if (failed != 0 || info.si_pid != tid) return std::nullopt;
  return info.si_status;
}

// What a stop without an event is about; the stop that was asked for has one.
int signal_of(int stop) {
  const bool has_event = (stop >> 8) != 0;
  return has_event ? 0 : stop & 0x7f;
}

void rest_for_a_moment() {
  const timespec pause{0, 200'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace

Tracer::Tracer(pid_t process, size_t most_threads, Deadline deadline)
    : process_(process), is_child_(parent_of(process) == ::getpid()) {
  for (int round = 0; round < rounds; ++round) {
    const size_t before = threads_.size();
    seize_new(most_threads);
    if (threads_.size() == before) return;
    wait_for_stops(deadline);
  }
}

void Tracer::seize_new(size_t most_threads) {
  for (const pid_t tid : threads_of(process_)) {
    const bool known = std::any_of(threads_.begin(), threads_.end(),
                                   [&](const Thread& thread) { return thread.tid == tid; });
    if (known || threads_.size() >= most_threads) continue;
    Thread thread;
    thread.tid = tid;
    if (has_ended(process_, tid))
      thread.why_not = ended;
    else if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0)
      thread.why_not = why_not_traced(errno);
    else if (::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0)
      thread.why_not = why_not_traced(errno);
    threads_.push_back(thread);
  }
}

void Tracer::wait_for_stops(Deadline deadline) {
  const auto is_awaited = [](const Thread& t) { return !t.is_stopped && t.why_not.empty(); };
  for (;;) {
    for (Thread& thread : threads_) {
      if (!is_awaited(thread)) continue;
      const auto stop = stop_of(thread.tid);
      if (stop) thread.signal = signal_of(*stop);
      thread.is_stopped = stop.has_value();
      if (!stop && has_ended(process_, thread.tid)) thread.why_not = ended;
    }
    if (std::none_of(threads_.begin(), threads_.end(), is_awaited)) return;
    if (std::chrono::steady_clock::now() >= deadline) break;
    rest_for_a_moment();
  }
  for (Thread& thread : threads_)
    if (is_awaited(thread)) thread.why_not = "it did not stop in time: the kernel is busy with it";
}

std::optional<user_regs_struct> Tracer::registers(pid_t tid) const {
  user_regs_struct values{};
  iovec room{&values, sizeof values};
  const long failed = ::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &room);
  if (failed != 0 || room.iov_len != sizeof values) return std::nullopt;
  return values;
}

// A thread that is about to end, or to stop, cannot be let go yet; and what has ended waits for its
// tracer: left alone, it would keep its whole process from ending. Our own child's end is for
// whoever waits for it.
void Tracer::let_go(const Thread& thread) const {
  const auto signal = static_cast<long>(thread.signal);
  const bool is_own_child = thread.tid == process_ && is_child_;
  for (int tries = 0; tries < most_tries_to_let_go; ++tries) {
    if (::ptrace(PTRACE_DETACH, thread.tid, nullptr, signal) == 0 || errno != ESRCH) return;
    if (is_own_child && has_ended(process_, thread.tid)) return;
    siginfo_t info{};
    if (!is_own_child &&
        (::waitid(P_PID, thread.tid, &info, WEXITED | WNOHANG | __WALL) != 0 || info.si_pid != 0))
      return;
    rest_for_a_moment();
  }
}

Tracer::~Tracer() {
  for (const Thread& thread : threads_) let_go(thread);
}

}  // namespace unflake
