#include "run/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds usual_pause = 20ms;
constexpr std::chrono::milliseconds pause_when_quiet = 10ms;
constexpr std::chrono::milliseconds pause_of_holds = 2ms;
constexpr std::chrono::milliseconds longest_pause = 640ms;
// A thread that slept at one look and has not run until the next slept all the time between: so all
// of them did at one moment.
constexpr int looks_to_release = 2;
constexpr int looks_to_blame = 3;

std::string text_of(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t size; file && (size = ::read(file.get(), buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(size));
  return text;
}

std::string link_of(pid_t pid, int descriptor) {
  std::array<char, 256> target;
  const ssize_t size = ::readlink(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(),
                                  target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : "";
}

// --- A thread's state in the kernel ---

class Status {
 public:
  explicit Status(const std::string& path) : text_(text_of(path)) {}

  bool has_ended() const { return is_any_of("ZX"); }
  bool sleeps() const { return is_any_of("S"); }
  uint64_t field(std::string_view name, int base = 10) const {
    const size_t at = text_.find(fmt::format("\n{}:", name));
    if (at == std::string::npos) return 0;
    return std::strtoull(text_.c_str() + at + name.size() + 2, nullptr, base);
  }
  uint64_t switches() const {
    return field("voluntary_ctxt_switches") + field("nonvoluntary_ctxt_switches");
  }

 private:
  bool is_any_of(std::string_view states) const {
    const size_t at = text_.find("\nState:\t");
    return at != std::string::npos && at + 8 < text_.size() &&
           states.find(text_[at + 8]) != std::string_view::npos;
  }

  const std::string text_;
};

constexpr uint64_t bit(int signal) {
  return uint64_t{1} << (signal - 1);
}

// Handlers for what a thread does itself, for its children, which are watched too, for a terminal
// and for the wish that the test ends. Frameworks have those. 32 and 33 are the C library's own.
constexpr uint64_t expected_handlers =
    bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGABRT) | bit(SIGTRAP) |
    bit(SIGSYS) | bit(SIGPIPE) | bit(SIGCHLD) | bit(SIGINT) | bit(SIGTERM) | bit(SIGQUIT) |
    bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU) | bit(SIGWINCH) | bit(32) | bit(33);

bool can_be_signalled(const Status& status) {
  const uint64_t pending =
      (status.field("SigPnd", 16) | status.field("ShdPnd", 16)) & ~status.field("SigBlk", 16);
  return pending != 0 || (status.field("SigCgt", 16) & ~expected_handlers) != 0;
}

bool is_futex_wait(uint64_t operation) {
  switch (operation & static_cast<uint64_t>(FUTEX_CMD_MASK)) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_WAIT_REQUEUE_PI:
      return true;
    default:
      return false;
  }
}

bool is_transfer(long call) {
  return call == SYS_read || call == SYS_readv || call == SYS_write || call == SYS_writev;
}

// What of the descriptors and of the memory is asked later: it takes longer.
bool may_be_endless(long call, const std::array<uint64_t, 6>& arguments) {
  if (call == SYS_futex) return is_futex_wait(arguments[1]) && arguments[3] == 0;
  return call == SYS_wait4 || call == SYS_waitid || is_transfer(call);
}

struct SystemCall {
  long number = -1;
  std::array<uint64_t, 6> arguments{};
};

// Of a program that is not of this machine's kind, numbers mean other calls; its stack is below.
std::optional<SystemCall> system_call_of(pid_t pid, pid_t tid) {
  SystemCall call;
  unsigned long a[6], stack = 0;
  const std::string text = text_of(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  if (std::sscanf(text.c_str(), "%ld %lx %lx %lx %lx %lx %lx %lx", &call.number, &a[0], &a[1],
                  &a[2], &a[3], &a[4], &a[5], &stack) != 8)
    return std::nullopt;
  std::copy(a, a + 6, call.arguments.begin());
  if (call.number < 0 || stack >> 32 == 0) return std::nullopt;
  return call;
}

// --- What else could wake a thread ---

// Without a map of the memory everything counts as shared.
bool is_private(const std::string& maps, uint64_t address) {
  for (const std::string_view line : split_lines(maps)) {
    unsigned long start = 0, end = 0;
    char flags[5] = "";
    if (std::sscanf(std::string(line).c_str(), "%lx-%lx %4s", &start, &end, flags) != 3) continue;
    if (address >= start && address < end) return flags[3] == 'p';
  }
  return false;
}

// Rings and queues of the kernel write and signal when nobody of the test runs.
bool has_helpers_in_kernel(pid_t pid, const std::string& maps) {
  if (maps.empty() || maps.find("/[aio]") != std::string::npos) return true;
  const std::vector<int> descriptors = numbered_entries(fmt::format("/proc/{}/fd", pid));
  return std::ranges::any_of(descriptors, [&](int descriptor) {
    return link_of(pid, descriptor).find("[io_uring]") != std::string::npos;
  });
}

bool is_open_to_outside(pid_t pid, const std::string& maps) {
  const Status status(fmt::format("/proc/{}/status", pid));
  return can_be_signalled(status) || !text_of(fmt::format("/proc/{}/timers", pid)).empty() ||
         has_helpers_in_kernel(pid, maps);
}

// The test got no descriptors but those that this process has too. What it has not passed on by a
// socket can only be in processes whose descriptors can be seen.
bool has_sockets(pid_t pid) {
  const std::vector<int> descriptors = numbered_entries(fmt::format("/proc/{}/fd", pid));
  return std::ranges::any_of(
      descriptors, [&](int descriptor) { return link_of(pid, descriptor).starts_with("socket:"); });
}

bool has_any_of(pid_t pid, const std::set<std::string>& pipes) {
  const std::vector<int> descriptors = numbered_entries(fmt::format("/proc/{}/fd", pid));
  return std::ranges::any_of(
      descriptors, [&](int descriptor) { return pipes.contains(link_of(pid, descriptor)); });
}

bool is_any_outside(const std::set<std::string>& pipes, const std::set<pid_t>& inside) {
  if (pipes.empty()) return false;
  if (std::ranges::any_of(inside, has_sockets)) return true;
  const std::vector<int> processes = numbered_entries("/proc");
  return std::ranges::any_of(
      processes, [&](pid_t pid) { return !inside.contains(pid) && has_any_of(pid, pipes); });
}

template <class Waiter>
bool waits_for_tree(const Waiter& waiter, const std::string& maps, std::set<std::string>& pipes) {
  if (waiter.is_held) return true;
  if (waiter.call == SYS_futex)
    return (waiter.arguments[1] & FUTEX_PRIVATE_FLAG) != 0 || is_private(maps, waiter.arguments[0]);
  if (!is_transfer(waiter.call)) return true;
  std::string pipe = link_of(waiter.pid, static_cast<int>(waiter.arguments[0]));
  const bool is_pipe = pipe.starts_with("pipe:[");
  pipes.insert(std::move(pipe));
  return is_pipe;
}

template <class Waiter>
bool only_wait_for_each_other(const std::vector<Waiter>& waiters) {
  std::set<pid_t> inside;
  std::set<std::string> pipes;
  std::string maps;
  for (const Waiter& waiter : waiters) {
    if (inside.insert(waiter.pid).second) {
      maps = text_of(fmt::format("/proc/{}/maps", waiter.pid));
      if (is_open_to_outside(waiter.pid, maps)) return false;
    }
    if (!waits_for_tree(waiter, maps, pipes)) return false;
  }
  return !is_any_outside(pipes, inside);
}

// --- Who has what others wait for ---

int int_in(pid_t pid, uint64_t address) {
  int value = 0;
  const iovec here{&value, sizeof value};
  const iovec there{reinterpret_cast<void*>(address), sizeof value};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == ssize_t{sizeof value} ? value : 0;
}

bool is_in(const ThreadAtEnd& thread, std::string_view function) {
  return std::ranges::any_of(thread.frames, [&](const ThreadAtEnd::Frame& frame) {
    return !frame.is_project && frame.function.find(function) != std::string::npos;
  });
}

// In glibc's words: a mutex names its owner, a thread that is joined is waited for at its number.
int owner_of_futex(const ThreadAtEnd& thread, uint64_t word) {
  const auto calls = [&](const char* name) { return thread.call.find(name) != std::string::npos; };
  if (calls("join")) return int_in(thread.pid, word);
  if (calls("mutex") || calls("mtx") || is_in(thread, "lll_lock_wait"))
    return int_in(thread.pid, word + 2 * sizeof(int));
  return 0;
}

}  // namespace

QuiescenceWatch::QuiescenceWatch(const Launch& launch, Others others)
    : others_(std::move(others)),
      holds_(launch.holds),
      offset_(launch.quiescence_offset),
      pause_(holds_ ? pause_of_holds : usual_pause) {
  const size_t colon = launch.agent_memory.find(':');
  if (colon == std::string::npos || offset_ == 0) return;
  memory_.reset(::open(launch.agent_memory.c_str() + colon + 1, O_RDWR | O_CLOEXEC));
  next_look_ = next_whole_look_ = Clock::now() + pause_;
}

int QuiescenceWatch::milliseconds_to_look() const {
  if (!memory_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look_ - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, longest_pause.count()));
}

void QuiescenceWatch::read_held() {
  const ssize_t size = ::pread(memory_.get(), &told_, sizeof told_, static_cast<off_t>(offset_));
  if (size != ssize_t{sizeof told_}) told_ = {};
}

const protocol::HeldThread* QuiescenceWatch::held_as(const Waiter& waiter) const {
  const auto found = std::ranges::find_if(told_.held, [&](const protocol::HeldThread& held) {
    return held.tid.load() == static_cast<uint32_t>(waiter.tid) && held.word.load() != 0 &&
           waiter.call == SYS_futex && held.word.load() == waiter.arguments[0];
  });
  return found == std::end(told_.held) ? nullptr : &*found;
}

// Of a process that cannot be looked at, nothing is known.
bool QuiescenceWatch::add_waiters(pid_t pid, Waiters& all) const {
  const std::vector<int> threads = numbered_entries(fmt::format("/proc/{}/task", pid));
  if (threads.empty()) return ::kill(pid, 0) != 0 && errno == ESRCH;
  for (const pid_t tid : threads) {
    const Status status(fmt::format("/proc/{}/task/{}/status", pid, tid));
    if (status.has_ended()) continue;
    if (!status.sleeps() || status.field("TracerPid") != 0) return false;
    const auto call = system_call_of(pid, tid);
    if (!call) return false;
    Waiter waiter{pid, tid, call->number, call->arguments, status.switches(), false};
    waiter.is_held = held_as(waiter) != nullptr;
    if (waiter.is_held)
      waiter = {pid, tid, call->number, {}, 0, true};  // it looks around now and then
    else if (!may_be_endless(waiter.call, waiter.arguments))
      return false;
    all.push_back(waiter);
  }
  return true;
}

std::optional<QuiescenceWatch::Waiters> QuiescenceWatch::all_waiting(
    const std::vector<pid_t>& processes) const {
  Waiters all;
  for (const pid_t pid : processes)
    if (!add_waiters(pid, all)) return std::nullopt;
  if (all.empty()) return std::nullopt;
  std::ranges::sort(all, {},
                    [](const Waiter& waiter) { return std::pair(waiter.pid, waiter.tid); });
  return all;
}

// Whoever is held costs time, and a look is not for free.
void QuiescenceWatch::plan_next_look(bool is_any_held) {
  const auto now = Clock::now();
  next_whole_look_ = now + pause_;
  next_look_ = holds_ && !is_any_held ? now + pause_of_holds : next_whole_look_;
}

// A test that is open to the outside will be so for a while.
bool QuiescenceWatch::is_quiet(bool is_any_held) {
  auto now = all_waiting(listed_descendants(others_()));
  const bool is_same = now && now == seen_;
  same_looks_ = is_same ? same_looks_ + 1 : 0;
  if (!now && is_any_held) pause_ = std::clamp(2 * pause_, pause_of_holds, 4 * pause_of_holds);
  if (!now && !is_any_held) pause_ = usual_pause;
  if (now && !is_same) pause_ = is_any_held ? pause_of_holds : pause_when_quiet;
  seen_ = std::move(now);
  if (!is_same || same_looks_ + 1 < (is_any_held ? looks_to_release : looks_to_blame)) return false;
  const bool quiet = told_.timers.load() == 0 && only_wait_for_each_other(*seen_) &&
                     all_waiting(all_descendants(others_())) == seen_;
  if (!quiet) pause_ = std::min(2 * pause_, is_any_held ? usual_pause : longest_pause);
  return quiet;
}

bool QuiescenceWatch::look() {
  if (!memory_ || Clock::now() < next_look_) return false;
  read_held();
  const bool is_any_held = std::ranges::any_of(
      told_.held, [](const protocol::HeldThread& held) { return held.tid.load() != 0; });
  if (!is_any_held && Clock::now() < next_whole_look_) {
    next_look_ = Clock::now() + pause_of_holds;
    return false;
  }
  const bool quiet = is_quiet(is_any_held);
  plan_next_look(is_any_held);
  if (!quiet) return false;
  if (std::ranges::none_of(*seen_, &Waiter::is_held)) return true;
  release_last_held();
  seen_.reset();
  return false;
}

void QuiescenceWatch::release_last_held() {
  const auto is_held = [&](const protocol::HeldThread& held) {
    return std::ranges::any_of(*seen_, [&](const Waiter& waiter) {
      return waiter.is_held && held.tid.load() == static_cast<uint32_t>(waiter.tid);
    });
  };
  const protocol::HeldThread* last = nullptr;
  for (const protocol::HeldThread& held : told_.held)
    if (is_held(held) && (last == nullptr || held.began_ns.load() > last->began_ns.load()))
      last = &held;
  if (last == nullptr) return;
  const auto number = static_cast<size_t>(last - told_.held);
  const size_t place = offset_ + offsetof(protocol::Quiescence, held) +
                       number * sizeof(protocol::HeldThread) +
                       offsetof(protocol::HeldThread, released);
  const uint32_t released = 1;
  (void)!::pwrite(memory_.get(), &released, sizeof released, static_cast<off_t>(place));
}

std::vector<ProcessResult::Waiting> QuiescenceWatch::waiting(
    const std::vector<ThreadAtEnd>& stacks) const {
  std::vector<ProcessResult::Waiting> all;
  for (const Waiter& waiter : seen_.value_or(Waiters())) {
    ProcessResult::Waiting added{waiter.pid, waiter.tid, waiter.arguments[0], 0};
    const auto stack = std::ranges::find(stacks, waiter.tid, &ThreadAtEnd::tid);
    if (waiter.call == SYS_futex && stack != stacks.end())
      added.for_tid = owner_of_futex(*stack, waiter.arguments[0]);
    if (waiter.call == SYS_wait4)
      added.for_tid = std::max(0, static_cast<int>(waiter.arguments[0]));
    all.push_back(added);
  }
  return all;
}

}  // namespace unflake
