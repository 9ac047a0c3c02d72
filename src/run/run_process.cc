#include "run/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "run/conditions.h"
#include "run/thread_stacks.h"
#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

using Clock = std::chrono::steady_clock;

// Room for what a test writes between two looks at it; see Watch::exited. The system may give less.
constexpr int wanted_pipe_size = 1 << 20;
constexpr int milliseconds_between_looks = 20;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(pipe.read_end.get(), F_SETPIPE_SZ, wanted_pipe_size);
  return pipe;
}

// The next run's pipe is made while this one runs: for short runs, the time between them counts.
class PipeStock {
 public:
  std::optional<Pipe> take() { return spare_ ? std::exchange(spare_, std::nullopt) : make_pipe(); }
  void refill() {
    if (!spare_) spare_ = make_pipe();
  }

 private:
  std::optional<Pipe> spare_;
};

std::string why_not_started(const Launch& launch, int code) {
  const std::string& cwd = launch.command.cwd;
  if (!cwd.empty() && ::access(cwd.c_str(), X_OK) != 0)
    return fmt::format("the working directory {} cannot be entered: {}", cwd, std::strerror(errno));
  return fmt::format("{} cannot be started: {}", launch.command.argv[0], std::strerror(code));
}

ProcessResult not_started(std::string error, int code) {
  ProcessResult result;
  result.end = ProcessResult::End::not_started;
  result.code = code;
  result.error = std::move(error);
  return result;
}

ProcessResult without_conditions(int code) {
  return not_started(
      fmt::format("the conditions of this run cannot be made: {}", std::strerror(code)), code);
}

class Stream {
 public:
  Stream(UniqueFd fd, const OutputLimits& limits)
      : fd_(std::move(fd)), capture_(limits.head, limits.tail) {}

  int fd() const { return fd_.get(); }  // -1 once the stream is at its end

  size_t read_what_is_there() {
    static std::array<char, 64 * 1024> buffer;
    size_t total = 0;
    while (fd_) {
      const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) break;
      if (size <= 0) {
        fd_.reset();
        break;
      }
      capture_.append({buffer.data(), static_cast<size_t>(size)});
      total += static_cast<size_t>(size);
      if (size < static_cast<ssize_t>(buffer.size())) break;
    }
    return total;
  }

  UniqueFd release() { return std::move(fd_); }

  CapturedOutput captured() const { return {capture_.head(), capture_.tail(), capture_.total()}; }

 private:
  UniqueFd fd_;
  BoundedCapture capture_;
};

struct Started {
  pid_t pid = 0;
  Clock::time_point at;
  int error = 0;  // errno of a failed start
  bool stopped = false;
  std::string no_fork_server;
};

// Watches over one started process until it is gone.
class Watch {
 public:
  Watch(const Launch& launch, const Started& started, Control& control, Stream& output,
        Stream* errors, ForkServers& servers, const CrashWatch& crashes, Scarcity& scarcity)
      : launch_(launch),
        pid_(started.pid),
        started_(started.at),
        control_(control),
        output_(output),
        errors_(errors),
        servers_(servers),
        crashes_(crashes),
        scarcity_(scarcity),
        quiescence_(launch, [this] { return others(); }) {
    if (launch.timeout > Duration::zero()) deadline_ = started_ + launch.timeout;
  }

  ProcessResult until_the_end() {
    const UniqueFd handle = open_pidfd(pid_);
    while (!exited(handle.get())) act_on_time();
    const auto ended = Clock::now();
    scarcity_.end();
    ProcessResult result = reap();
    if (!launch_.crash_library.empty()) hear_last_crash(result);
    result.duration = std::chrono::duration_cast<Duration>(ended - started_ - looked_);
    result.thread_stacks = std::move(stacks_);
    result.deadlock = std::move(deadlock_);
    if (!launch_.keep_leftovers) result.leftovers = end_leftovers();
    if (launch_.conditions.twins > 0) result.leftovers = 0;  // they are ours
    drain();
    return result;
  }

 private:
  // Waits for the next thing to happen; true when the process has ended. Waking up for every line
  // that a test writes would slow the test down, so the pipe is checked now and then, and
  // watched constantly only once the test has shown that it could fill it between two looks.
  bool exited(int handle) {
    pollfd watched[] = {{handle, POLLIN, 0},
                        {stopping_ == Stopping::killed ? -1 : control_.fd(), POLLIN, 0},
                        {crashes_.fd(), POLLIN, 0},
                        {much_output_ ? output_.fd() : -1, POLLIN, 0},
                        {much_output_ && errors_ ? errors_->fd() : -1, POLLIN, 0}};
    int wait = milliseconds_to_deadline();
    if (!much_output_ && (wait < 0 || wait > milliseconds_between_looks))
      wait = milliseconds_between_looks;
    if (const int look = quiescence_.milliseconds_to_look();
        stopping_ == Stopping::no && look >= 0 && (wait < 0 || look < wait))
      wait = look;
    if (::poll(watched, std::size(watched), wait) < 0) return false;
    if (watched[0].revents != 0) return true;
    if (drain() > pipe_size_ / 4) much_output_ = true;
    if (watched[1].revents && control_.read_word_to_stop()) stop(ProcessResult::End::cancelled);
    if (watched[2].revents) look_at_crash();
    return false;
  }

  // The time that this takes is not the test's.
  void look_at_crash() {
    const auto notice = crashes_.read();
    if (!notice) return;
    heard_ = true;
    if (notice->pid != pid_) return crashes_.let_die();  // an orphan of the test
    crash_ = notice->signal;
    const auto began = Clock::now();
    auto stacks = stack_at_crash(*notice, launch_.project_code, [this] { crashes_.let_die(); });
    if (stopping_ == Stopping::no) stacks_ = std::move(stacks);
    looked_ += Clock::now() - began;
    if (deadline_) *deadline_ += Clock::now() - began;
  }

  // A thread that crashes while another one ends the process has crashed anyway: without
  // its wait for us it would have been first.
  void hear_last_crash(ProcessResult& result) {
    while (const auto notice = crashes_.read()) {
      heard_ = true;
      if (notice->pid == pid_) crash_ = notice->signal;
    }
    if (crash_ && result.end == ProcessResult::End::exited) {
      result.end = ProcessResult::End::signalled;
      result.code = *crash_;
    }
    if (heard_) crashes_.forget();
  }

  void act_on_time() {
    if (deadline_ && Clock::now() >= *deadline_) stop(ProcessResult::End::timed_out);
    is_deadlocked_ = stopping_ == Stopping::no && quiescence_.look();
    if (is_deadlocked_) stop(ProcessResult::End::timed_out);  // as it would have
  }

  std::set<pid_t> others() {
    std::set<pid_t> all = servers_.pids();
    all.merge(scarcity_.pids());
    return all;
  }

  // The first call asks, the second one, by the end of the grace or by a second word from the
  // other side, kills.
  void stop(ProcessResult::End reason) {
    if (stopping_ == Stopping::no) {
      const auto began = Clock::now();
      end_ = reason;
      scarcity_.end();  // a stopped process would not notice the request
      if (reason == ProcessResult::End::timed_out)
        stacks_ = stacks_at_timeout(pid_, servers_.pids(), launch_.project_code);
      if (is_deadlocked_) {
        deadlock_ = quiescence_.waiting(stacks_);
        looked_ += Clock::now() - began;
      }
      stopping_ = Stopping::asked;
      deadline_ = Clock::now() + launch_.grace;
      ::kill(-pid_, SIGTERM);
    } else {
      stopping_ = Stopping::killed;
      deadline_.reset();
      ::kill(-pid_, SIGKILL);
      ::kill(pid_, SIGKILL);
    }
  }

  int milliseconds_to_deadline() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3600 * 1000));
  }

  ProcessResult reap() {
    ProcessResult result;
    int status = 0;
    rusage usage{};
    while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    const bool signalled = WIFSIGNALED(status);
    result.end =
        end_.value_or(signalled ? ProcessResult::End::signalled : ProcessResult::End::exited);
    result.code = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    result.dumped_core = signalled && WCOREDUMP(status);
    const auto to_duration = [](const timeval& time) {
      return Duration(time.tv_sec * 1'000'000 + time.tv_usec);
    };
    result.user_cpu = to_duration(usage.ru_utime);
    result.system_cpu = to_duration(usage.ru_stime);
    result.max_rss_kib = usage.ru_maxrss;
    return result;
  }

  int end_leftovers() {
    const std::set<pid_t> servers = servers_.pids();
    return has_descendants(servers) ? kill_all_descendants(servers) : 0;
  }

  size_t drain() {
    return output_.read_what_is_there() + (errors_ ? errors_->read_what_is_there() : 0);
  }

  enum class Stopping { no, asked, killed };

  const Launch& launch_;
  const pid_t pid_;
  const Clock::time_point started_;
  Control& control_;
  Stream& output_;
  Stream* errors_;
  ForkServers& servers_;
  const CrashWatch& crashes_;
  Scarcity& scarcity_;
  std::optional<Clock::time_point> deadline_;
  std::optional<ProcessResult::End> end_;
  bool heard_ = false;        // of any crash
  std::optional<int> crash_;  // the signal of the test's own
  Clock::duration looked_{};  // at a crash or a deadlock
  Stopping stopping_ = Stopping::no;
  std::vector<ThreadAtEnd> stacks_;
  const size_t pipe_size_ = static_cast<size_t>(::fcntl(output_.fd(), F_GETPIPE_SZ));
  bool much_output_ = false;
  QuiescenceWatch quiescence_;
  bool is_deadlocked_ = false;
  std::vector<ProcessResult::Waiting> deadlock_;
};

Started start(const Launch& launch, int output, int errors, Control& control, ForkServers& servers,
              const CrashWatch& crashes, Scarcity& scarcity, const OtherWorld& world) {
  limit_core_dumps(launch.core_dumps);
  Started started;
  if (!launch.fork_server.empty() && world.are_usual()) {
    ForkedStart forked = servers.start(launch, output, errors, control, scarcity.pids());
    if (forked.child) return {*forked.child, forked.at, 0, false, ""};
    started.stopped = forked.stopped;
    started.no_fork_server = std::move(forked.refusal);
    if (forked.stopped) return started;
  }
  Environment environment(launch.command.env);
  crashes.load(environment, launch.crash_library);
  world.change(environment);
  for (int i = 0; i < launch.conditions.twins && started.error == 0; ++i)
    started.error = scarcity.keep(world.start_twin(environment));
  if (started.error != 0) return started;
  const auto step = [&] {
    if (launch.fixed_addresses) fix_addresses();
    return world.enter();
  };
  started.at = Clock::now();
  started.error = spawn(world.command(), environment, {output, errors}, step, started.pid);
  return started;
}

ProcessResult stopped_before_start() {
  ProcessResult result;
  result.end = ProcessResult::End::cancelled;
  return result;
}

ProcessResult start_and_watch(const Launch& launch, Control& control, ForkServers& servers,
                              const CrashWatch& crashes, const std::function<void()>& meanwhile) {
  if (launch.command.argv.empty()) return not_started("there is no command to run", EINVAL);
  static PipeStock stock;
  std::optional<Pipe> output = stock.take();
  std::optional<Pipe> errors = launch.limits.split_errors ? make_pipe() : std::nullopt;
  if (!output || (launch.limits.split_errors && !errors))
    return not_started(fmt::format("cannot make a pipe: {}", std::strerror(errno)), errno);

  Scarcity scarcity(launch.conditions, launch.slot);
  if (const int code = scarcity.begin(); code != 0) return without_conditions(code);
  OtherWorld world(launch);
  if (const int code = world.make(); code != 0) return without_conditions(code);
  const Started started =
      start(launch, output->write_end.get(), (errors ? errors : output)->write_end.get(), control,
            servers, crashes, scarcity, world);
  if (started.stopped) return stopped_before_start();
  if (started.error != 0 && !world.are_usual() && started.error != ENOENT)
    return without_conditions(started.error);
  if (started.error != 0) return not_started(why_not_started(launch, started.error), started.error);
  const int unmet = scarcity.apply_to(started.pid);
  if (unmet != 0) ::kill(-started.pid, SIGKILL);
  meanwhile();
  stock.refill();
  output->write_end.reset();
  if (errors) errors->write_end.reset();

  Stream output_stream(std::move(output->read_end), launch.limits);
  std::optional<Stream> error_stream;
  if (errors) error_stream.emplace(std::move(errors->read_end), launch.limits);
  ProcessResult result = Watch(launch, started, control, output_stream,
                               error_stream ? &*error_stream : nullptr, servers, crashes, scarcity)
                             .until_the_end();
  if (unmet != 0) return without_conditions(unmet);
  if (launch.keep_leftovers) control.take_over(output_stream.release());
  result.output = output_stream.captured();
  if (error_stream) result.errors = error_stream->captured();
  result.no_fork_server = started.no_fork_server;
  return result;
}

}  // namespace

ProcessResult run_process(const Launch& launch, Control& control, ForkServers& servers,
                          const CrashWatch& crashes, const std::function<void()>& meanwhile) {
  const auto started = std::chrono::system_clock::now();
  ProcessResult result = start_and_watch(launch, control, servers, crashes, meanwhile);
  result.started = started;
  return result;
}

}  // namespace unflake
