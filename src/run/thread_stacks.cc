#include "run/thread_stacks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

#include "run/agent_session.h"
#include "run/supervisor.h"
#include "symbols/process_stacks.h"
#include "symbols/project_code.h"
#include "util/paths.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t most_threads = 64;
constexpr size_t most_threads_at_crash = 10'000;
constexpr size_t most_frames = 64;  // of a thread
constexpr auto most_time = 2s;

// What unflake loads into a test is not part of it: an end must look the same with and without it.
bool is_ours(const std::string& image) {
  const auto name = base_name(image);
  return name == agent_file_name || name == protocol::crash_file_name;
}

// By the name of the hook that the test has called.
std::string timing_api_of(const ThreadFrame& at) {
  for (const Frame& frame : at.frames) {
    const size_t begin = frame.function.rfind(':') + 1;
    std::string_view name = std::string_view(frame.function).substr(begin);
    if (name.starts_with("hook_")) name.remove_prefix(5);
    if (find_timing_api(name) != nullptr) return std::string(name);
  }
  return "";
}

void add_frames(const ThreadFrame& at, const ProjectCode& policy,
                std::vector<ThreadAtEnd::Frame>& frames) {
  if (is_ours(at.image)) return;
  if (at.frames.empty())
    frames.push_back({at.image.empty() ? "?" : base_name(at.image), "", 0, false});
  const bool project_image = policy.is_project_image(at.image);
  for (const Frame& frame : at.frames) frames.push_back(frame_at_end(frame, project_image, policy));
}

ThreadAtEnd readable(const ThreadStack& stack, pid_t pid, const ProjectCode& policy) {
  ThreadAtEnd thread{pid, stack.tid, stack.name, {}, stack.why_empty};
  for (const ThreadFrame& frame : stack.frames) {
    if (is_ours(frame.image) && thread.call.empty()) thread.call = timing_api_of(frame);
    add_frames(frame, policy, thread.frames);
  }
  return thread;
}

// How a program ends itself is not a place.
bool is_abort(const ThreadFrame& at) {
  return std::ranges::any_of(at.frames, [](const Frame& frame) {
    return frame.function == "abort" || frame.function == "__GI_abort";
  });
}

// Without our handler and what it waits in. A program's own handler that raises the signal again
// when it is done is left out too: what it was called for is the crash.
void begin_at_crash(ThreadStack& stack, bool was_sent) {
  auto& frames = stack.frames;
  // After the frame of a signal, which counts as interrupted too.
  const auto next_interrupted = [&](auto from) {
    const auto signal = std::adjacent_find(
        from, frames.end(),
        [](const ThreadFrame& a, const ThreadFrame& b) { return a.interrupted && b.interrupted; });
    return signal == frames.end() ? signal : signal + 1;
  };
  auto crashed =
      std::ranges::find_if(frames, [](const ThreadFrame& frame) { return is_ours(frame.image); });
  crashed = next_interrupted(crashed);
  if (crashed == frames.end()) return;
  const auto below = next_interrupted(crashed);
  if (was_sent && below != frames.end() && std::none_of(crashed, below, is_abort)) crashed = below;
  frames.erase(frames.begin(), crashed);
  const auto aborted = std::ranges::find_if(frames, is_abort);
  if (aborted != frames.end()) frames.erase(frames.begin(), aborted);
}

}  // namespace

ThreadAtEnd::Frame frame_at_end(const Frame& frame, bool is_project_image,
                                const ProjectCode& policy) {
  const bool is_project = is_project_image && first_project_frame({frame}, policy) != nullptr &&
                          !is_framework_function(frame.function);
  return {frame.function, frame.file, frame.line, is_project};
}

std::vector<ThreadAtEnd> stacks_at_timeout(pid_t first, const std::set<pid_t>& others,
                                           const ProjectCodeRules& code) {
  const ProjectCode policy(code);
  std::vector<pid_t> processes = all_descendants(others);
  std::ranges::stable_partition(processes, [&](pid_t pid) { return pid == first; });
  const auto end = Clock::now() + most_time;
  std::vector<ThreadAtEnd> threads;
  for (const pid_t pid : processes) {
    const auto left = std::chrono::floor<std::chrono::milliseconds>(end - Clock::now());
    if (left <= 0ms || threads.size() >= most_threads) break;
    const auto stacks = stacks_of(pid, {most_threads - threads.size(), most_frames, left});
    if (!stacks) continue;
    for (const ThreadStack& stack : *stacks) threads.push_back(readable(stack, pid, policy));
  }
  return threads;
}

std::vector<ThreadAtEnd> stack_at_crash(const protocol::CrashNotice& notice,
                                        const ProjectCodeRules& code,
                                        const std::function<void()>& let_die) {
  auto stack = stack_of_thread(notice.pid, notice.tid, {.threads = most_threads_at_crash});
  let_die();
  if (!stack) return {};
  give_names(*stack, most_time);
  begin_at_crash(*stack, notice.was_sent != 0);
  ThreadAtEnd thread = readable(*stack, notice.pid, ProjectCode(code));
  if (thread.frames.empty()) return {};
  return {std::move(thread)};
}

CrashWatch::CrashWatch() {
  sigset_t notice;
  ::sigemptyset(&notice);
  ::sigaddset(&notice, protocol::crash_notice_signal);
  ::sigprocmask(SIG_BLOCK, &notice, nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  answers_.reset(ends[0]);
  answers_here_.reset(ends[1]);
  notices_.reset(::signalfd(-1, &notice, SFD_CLOEXEC | SFD_NONBLOCK));
}

void CrashWatch::load(Environment& environment, const std::string& library) const {
  if (library.empty() || !notices_) return;
  environment.apply(preload(variables_of(environment), library, Preloaded::last));
  const pid_t self = ::getpid();
  environment.apply(
      {protocol::crash_variable, fmt::format("{}:/proc/{}/fd/{}", self, self, answers_.get())});
}

std::optional<protocol::CrashNotice> CrashWatch::read() const {
  signalfd_siginfo info{};
  if (::read(fd(), &info, sizeof info) != ssize_t{sizeof info}) return std::nullopt;
  return protocol::crash_notice(static_cast<int32_t>(info.ssi_pid), info.ssi_ptr);
}

void CrashWatch::let_die() const {
  const char answer = 1;
  (void)!::write(answers_here_.get(), &answer, 1);
}

void CrashWatch::forget() const {
  while (read()) {
  }
  std::array<char, 256> answers;
  while (::read(answers_.get(), answers.data(), answers.size()) > 0) {
  }
}

}  // namespace unflake
