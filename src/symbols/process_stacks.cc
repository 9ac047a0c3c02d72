#include "symbols/process_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "symbols/tracer.h"
#include "symbols/unwinder.h"

namespace unflake {
namespace {

std::string name_of(pid_t process, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/comm", process, tid));
  std::string name;
  std::getline(file, name);
  return name;
}

// The process stands still only while this works.
std::vector<ThreadStack> take_stacks(pid_t process, const StackLimits& limits,
                                     Tracer::Deadline deadline) {
  const Tracer tracer(process, limits.threads, deadline);
  Unwinder unwinder(process, tracer, deadline);
  std::vector<ThreadStack> stacks;
  for (const Tracer::Thread& thread : tracer.threads()) {
    ThreadStack stack;
    stack.tid = thread.tid;
    stack.name = name_of(process, thread.tid);
    stack.why_empty = thread.why_not;
    if (thread.is_stopped)
      for (CodePlace& place : unwinder.stack_of(thread.tid, limits.frames))
        stack.frames.push_back({std::move(place.image), place.address, {}});
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

class Names {
 public:
  explicit Names(Tracer::Deadline deadline) : deadline_(deadline) {}

  void give_names(ThreadFrame& frame) {
    if (std::chrono::steady_clock::now() >= deadline_ || !frame.image.starts_with('/')) return;
    const auto [known, is_new] = images_.emplace(frame.image, nullptr);
    if (is_new) known->second = open(frame.image);
    if (known->second != nullptr) frame.frames = known->second->frames_at(frame.address);
  }

 private:
  static std::shared_ptr<const Image> open(const std::string& path) {
    auto image = Image::open(path);
    return image ? *image : nullptr;
  }

  Tracer::Deadline deadline_;
  std::map<std::string, std::shared_ptr<const Image>> images_;
};

bool has_ended(const ThreadStack& stack) {
  return stack.frames.empty() && stack.name.empty();
}

}  // namespace

Result<std::vector<ThreadStack>> stacks_of(pid_t pid, const StackLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ThreadStack> stacks = take_stacks(pid, limits, start + limits.time);
  std::erase_if(stacks, has_ended);
  const bool any = std::any_of(stacks.begin(), stacks.end(),
                               [](const ThreadStack& stack) { return !stack.frames.empty(); });
  if (!any) {
    const std::string why = stacks.empty() ? "it has ended" : stacks.front().why_empty;
    return internal_error("no stack could be read: " + (why.empty() ? "its stacks are empty" : why),
                          fmt::format("process {}", pid));
  }
  Names names(start + 2 * limits.time);  // the process goes on meanwhile
  for (ThreadStack& stack : stacks)
    for (ThreadFrame& frame : stack.frames) names.give_names(frame);
  return stacks;
}

}  // namespace unflake
