#include "run/conditions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "util/files.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr nanoseconds period = 10ms;  // long for a signal, short for a test
constexpr nanoseconds longest_stop = 1s;
constexpr double smallest_share = 0.01;
constexpr int most_competitors = 64;
constexpr int parent_died = SIGTERM;

// A child that keeps nothing of this process but its pid. In its own session, because a
// kernel that shares the time between sessions would give all helpers together one test's share.
template <class Work>
pid_t start_helper(const char* name, int when_parent_dies, Work work) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  sigset_t waited_for;
  ::sigemptyset(&waited_for);
  ::sigaddset(&waited_for, parent_died);
  ::sigprocmask(SIG_BLOCK, &waited_for, nullptr);
  ::signal(parent_died, SIG_DFL);
  ::setsid();
  ::close_range(0, ~0U, 0);
  ::prctl(PR_SET_NAME, name);
  ::prctl(PR_SET_PDEATHSIG, when_parent_dies);
  if (::getppid() != parent) ::raise(when_parent_dies);
  work();
  ::_exit(0);
}

[[noreturn]] void compete() {
  for (;;) asm volatile("");
}

bool parent_dies_within(nanoseconds time) {
  sigset_t waited_for;
  ::sigemptyset(&waited_for);
  ::sigaddset(&waited_for, parent_died);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const timespec at_most{seconds.count(), (time - seconds).count()};
  return ::sigtimedwait(&waited_for, nullptr, &at_most) == parent_died;
}

// How long the group is stopped follows from how long it really ran, so that it has its share of
// the time even where this process does not wake up when it should. Nobody else would continue or
// end what a dead supervisor leaves stopped.
void pace(pid_t group, double share) {
  for (;;) {
    const auto continued = Clock::now();
    if (parent_dies_within(std::chrono::duration_cast<nanoseconds>(period * share))) break;
    ::kill(-group, SIGSTOP);
    const auto stop = (Clock::now() - continued) * (1 / share - 1);
    if (parent_dies_within(std::min(longest_stop, std::chrono::duration_cast<nanoseconds>(stop))))
      break;
    ::kill(-group, SIGCONT);
  }
  ::kill(-group, SIGKILL);
}

cpu_set_t only(size_t nth, const cpu_set_t& cores) {
  cpu_set_t one;
  CPU_ZERO(&one);
  nth %= static_cast<size_t>(CPU_COUNT(&cores));
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores) && nth-- == 0) CPU_SET(core, &one);
  return one;
}

}  // namespace

int Scarcity::begin() {
  int code = conditions_.one_core ? stay_on_one_core() : 0;
  const int competitors = std::min(conditions_.competitors, most_competitors);
  for (int i = 0; i < competitors && code == 0; ++i)
    code = keep(start_helper("unflake-busy", SIGKILL, compete));
  return code;
}

int Scarcity::apply_to(pid_t test) {
  use_all_cores();
  if (!(conditions_.cpu_share < 1)) return 0;
  const double share = std::max(conditions_.cpu_share, smallest_share);
  paced_ = test;
  return keep(start_helper("unflake-pace", parent_died, [&] { pace(test, share); }));
}

void Scarcity::end() {
  use_all_cores();
  for (const pid_t helper : helpers_) ::kill(helper, SIGKILL);
  for (const pid_t helper : helpers_)
    while (::waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {
    }
  helpers_.clear();
  if (paced_ != 0) ::kill(-std::exchange(paced_, 0), SIGCONT);
}

int Scarcity::stay_on_one_core() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return errno;
  const cpu_set_t one = only(slot_, cores);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) return errno;
  all_cores_ = cores;
  return 0;
}

void Scarcity::use_all_cores() {
  if (all_cores_) ::sched_setaffinity(0, sizeof *all_cores_, &*all_cores_);
  all_cores_.reset();
}

int Scarcity::keep(pid_t helper) {
  if (helper < 0) return errno;
  helpers_.insert(helper);
  return 0;
}

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Duration step = 1ms;         // spent sleeping, and computing
constexpr Duration longest_wait = 5s;  // for the answer, beyond the time that was asked for
constexpr size_t slot = 0;

Duration since(Clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(Clock::now() - begin);
}

Duration after_a_sleep() {
  const auto begin = Clock::now();
  std::this_thread::sleep_for(step);
  return since(begin) - step;
}

Duration processor_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::duration_cast<Duration>(std::chrono::seconds(used.tv_sec) +
                                              std::chrono::nanoseconds(used.tv_nsec));
}

Duration while_computing() {
  const auto begin = Clock::now();
  const Duration used = processor_time();
  while (processor_time() - used < step) {
  }
  return since(begin) - step;
}

// The start of a thread, and then its wake-up.
Duration of_a_thread() {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_begun = false, may_end = false;
  Clock::time_point woken;
  const auto created = Clock::now();
  Duration started{};
  std::thread other([&] {
    started = since(created);
    std::unique_lock lock(mutex);
    has_begun = true;
    changed.notify_one();
    changed.wait(lock, [&] { return may_end; });
    woken = Clock::now();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return has_begun; });
  may_end = true;
  const auto told = Clock::now();
  lock.unlock();
  changed.notify_one();
  other.join();
  return std::max(started, std::chrono::duration_cast<Duration>(woken - told));
}

Duration worst_within(Duration time) {
  const auto begin = Clock::now();
  Duration worst{};
  do {
    worst = std::max({worst, after_a_sleep(), while_computing(), of_a_thread()});
  } while (since(begin) < time);
  return worst;
}

// In its own process group, which can be stopped.
pid_t start_prober(Duration time, const UniqueFd& begin, const UniqueFd& answer) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  char go = 0;
  if (::read(begin.get(), &go, 1) != 1) ::_exit(1);
  const Duration worst = worst_within(time);
  ::_exit(::write(answer.get(), &worst, sizeof worst) == sizeof worst ? 0 : 1);
}

struct StopPipe {
  UniqueFd from, to;
  StopPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    from.reset(ends[0]);
    to.reset(ends[1]);
  }
};

Result<Duration> answer_in(const UniqueFd& pipe, Duration at_most) {
  pollfd readable{pipe.get(), POLLIN, 0};
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  while (::poll(&readable, 1, static_cast<int>(milliseconds)) < 0 && errno == EINTR) {
  }
  Duration worst{};
  if (readable.revents == 0) return at_most;  // at least that late
  if (::read(pipe.get(), &worst, sizeof worst) == sizeof worst) return worst;
  return internal_error("the process that measures how late this machine is ended early");
}

Error cannot_probe(int error) {
  return internal_error(
      fmt::format("cannot measure how late this machine is: {}", std::strerror(error)));
}

}  // namespace

Result<Duration> probe_lateness(const Conditions& conditions, Duration time) {
  StopPipe begin, answer;
  if (!begin.from || !answer.from) return cannot_probe(errno);
  Scarcity scarcity(conditions, slot);
  if (const int code = scarcity.begin(); code != 0) return cannot_probe(code);
  const pid_t prober = start_prober(time, begin.from, answer.to);
  if (prober < 0) return cannot_probe(errno);
  ::setpgid(prober, prober);
  answer.to.reset();
  const int code = scarcity.apply_to(prober);
  const bool began = code == 0 && ::write(begin.to.get(), "!", 1) == 1;
  const Result<Duration> worst =
      began ? answer_in(answer.from, time + longest_wait) : Result<Duration>(cannot_probe(code));
  scarcity.end();
  ::kill(prober, SIGKILL);
  while (::waitpid(prober, nullptr, 0) < 0 && errno == EINTR) {
  }
  return worst;
}

}  // namespace unflake
