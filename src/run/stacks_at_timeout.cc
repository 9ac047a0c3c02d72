#include "run/stacks_at_timeout.h"

#include <algorithm>
#include <chrono>

#include "run/agent_library.h"
#include "run/process_tree.h"
#include "symbols/process_stacks.h"
#include "symbols/project_code.h"
#include "util/base_name.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t most_threads = 64;
constexpr size_t most_frames = 64;  // of a thread
constexpr auto most_time = 2s;

// The agent's own frames are no part of the test: a hang must look the same with and without it.
void add_frames(const ThreadFrame& at, const ProjectCode& policy,
                std::vector<ThreadAtTimeout::Frame>& frames) {
  if (base_name(at.image) == agent_file_name) return;
  if (at.frames.empty())
    frames.push_back({at.image.empty() ? "?" : base_name(at.image), "", 0, false});
  const bool project_image = policy.is_project_image(at.image);
  for (const Frame& frame : at.frames) {
    const bool is_project = project_image && first_project_frame({frame}, policy) != nullptr;
    frames.push_back({frame.function, frame.file, frame.line, is_project});
  }
}

ThreadAtTimeout readable(const ThreadStack& stack, pid_t pid, const ProjectCode& policy) {
  ThreadAtTimeout thread{pid, stack.tid, stack.name, {}, stack.why_empty};
  for (const ThreadFrame& frame : stack.frames) add_frames(frame, policy, thread.frames);
  return thread;
}

}  // namespace

std::vector<ThreadAtTimeout> stacks_at_timeout(pid_t first, const std::set<pid_t>& others,
                                               const std::string& project_root) {
  ProjectCodeRules rules;
  rules.root = project_root;
  const ProjectCode policy(rules);
  std::vector<pid_t> processes = all_descendants(others);
  std::ranges::stable_partition(processes, [&](pid_t pid) { return pid == first; });
  const auto end = Clock::now() + most_time;
  std::vector<ThreadAtTimeout> threads;
  for (const pid_t pid : processes) {
    const auto left = std::chrono::floor<std::chrono::milliseconds>(end - Clock::now());
    if (left <= 0ms || threads.size() >= most_threads) break;
    const auto stacks = stacks_of(pid, {most_threads - threads.size(), most_frames, left});
    if (!stacks) continue;
    for (const ThreadStack& stack : *stacks) threads.push_back(readable(stack, pid, policy));
  }
  return threads;
}

}  // namespace unflake
