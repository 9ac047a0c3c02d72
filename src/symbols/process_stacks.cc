#include "symbols/process_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "symbols/tracer.h"
#include "symbols/unwinder.h"
#include "util/file_stamp.h"

namespace unflake {
namespace {

std::string name_of(pid_t process, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/comm", process, tid));
  std::string name;
  std::getline(file, name);
  return name;
}

ThreadStack take_stack(pid_t process, const Tracer::Thread& thread, Unwinder& unwinder,
                       size_t most_frames) {
  ThreadStack stack;
  stack.tid = thread.tid;
  stack.name = name_of(process, thread.tid);
  stack.why_empty = thread.why_not;
  if (thread.is_stopped)
    for (CodePlace& place : unwinder.stack_of(thread.tid, most_frames))
      stack.frames.push_back({std::move(place.image), place.address, {}, place.interrupted});
  return stack;
}

// The process stands still only while this works.
std::vector<ThreadStack> take_stacks(pid_t process, const StackLimits& limits,
                                     Tracer::Deadline deadline) {
  const Tracer tracer(process, limits.threads, deadline);
  Unwinder unwinder(process, tracer, deadline);
  std::vector<ThreadStack> stacks;
  for (const Tracer::Thread& thread : tracer.threads())
    stacks.push_back(take_stack(process, thread, unwinder, limits.frames));
  return stacks;
}

constexpr size_t most_open_images = 32;

// Images stay open: whoever looks at one process of a test will look at others, and reading the
// debug information takes longer than anything else.
std::shared_ptr<const Image> image_at(const std::string& path) {
  struct Known {
    FileStamp stamp;
    std::shared_ptr<const Image> image;  // none: it cannot be read
  };
  static std::map<std::string, Known> images;
  if (images.size() > most_open_images) images.clear();
  Known& known = images[path];
  const FileStamp stamp = FileStamp::of(path);
  if (known.stamp == stamp) return known.image;
  auto opened = Image::open(path);
  known = {stamp, opened ? *opened : nullptr};
  return known.image;
}

void give_names_until(ThreadStack& stack, Tracer::Deadline deadline) {
  for (ThreadFrame& frame : stack.frames) {
    if (std::chrono::steady_clock::now() >= deadline || !frame.image.starts_with('/')) continue;
    if (const auto image = image_at(frame.image)) frame.frames = image->frames_at(frame.address);
  }
}

bool has_ended(const ThreadStack& stack) {
  return stack.frames.empty() && stack.name.empty();
}

Error no_stack(pid_t pid, const std::string& why) {
  return internal_error("no stack could be read: " + (why.empty() ? "its stacks are empty" : why),
                        fmt::format("process {}", pid));
}

}  // namespace

Result<std::vector<ThreadStack>> stacks_of(pid_t pid, const StackLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<ThreadStack> stacks = take_stacks(pid, limits, start + limits.time);
  std::erase_if(stacks, has_ended);
  const bool any = std::any_of(stacks.begin(), stacks.end(),
                               [](const ThreadStack& stack) { return !stack.frames.empty(); });
  if (!any) return no_stack(pid, stacks.empty() ? "it has ended" : stacks.front().why_empty);
  // The process goes on meanwhile.
  for (ThreadStack& stack : stacks) give_names_until(stack, start + 2 * limits.time);
  return stacks;
}

Result<ThreadStack> stack_of_thread(pid_t pid, pid_t tid, const StackLimits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  ThreadStack stack;
  {
    const Tracer tracer(pid, limits.threads, deadline);
    Unwinder unwinder(pid, tracer, deadline);
    const auto thread = std::ranges::find(tracer.threads(), tid, &Tracer::Thread::tid);
    if (thread != tracer.threads().end()) stack = take_stack(pid, *thread, unwinder, limits.frames);
  }
  if (stack.frames.empty()) return no_stack(pid, stack.why_empty);
  return stack;
}

void give_names(ThreadStack& stack, std::chrono::milliseconds at_most) {
  give_names_until(stack, std::chrono::steady_clock::now() + at_most);
}

}  // namespace unflake
