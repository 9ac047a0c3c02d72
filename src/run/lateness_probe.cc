#include "run/lateness_probe.h"

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

#include "run/scarcity.h"
#include "util/unique_fd.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Duration step = 1ms;         // that is slept, and computed
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

// In a process group of its own, which can be stopped.
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

struct Pipe {
  UniqueFd from, to;
  Pipe() {
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
  if (readable.revents == 0) return at_most;  // as late as that, at least
  if (::read(pipe.get(), &worst, sizeof worst) == sizeof worst) return worst;
  return internal_error("the process that looks how late this machine is ended early");
}

Error cannot_probe(int error) {
  return internal_error(
      fmt::format("cannot look how late this machine is: {}", std::strerror(error)));
}

}  // namespace

Result<Duration> probe_lateness(const Conditions& conditions, Duration time) {
  Pipe begin, answer;
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
