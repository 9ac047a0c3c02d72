#include "report/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "report/style.h"
#include "util/base_name.h"

namespace unflake {
namespace {

constexpr size_t most_stacks = 16;

std::string frame_line(const ThreadAtEnd::Frame& frame) {
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) text += fmt::format(" {}:{}", base_name(frame.file), frame.line);
  return one_line(text);
}

// A function that calls itself without end fills a stack with one line.
std::vector<std::string> without_repeats(const std::vector<std::string>& lines) {
  std::vector<std::string> told;
  for (auto line = lines.begin(); line != lines.end();) {
    const auto next =
        std::find_if(line, lines.end(), [&](const auto& other) { return other != *line; });
    told.push_back(repeated_frame(*line, static_cast<size_t>(next - line)));
    line = next;
  }
  return told;
}

std::vector<std::string> frame_lines(const ThreadAtEnd& thread, StackDetail detail) {
  std::vector<std::string> lines;
  if (thread.frames.empty()) lines.push_back("  no stack: " + one_line(thread.why_empty));
  size_t left_out = 0;
  const auto tell_left_out = [&] {
    if (left_out > 0) lines.push_back("  " + left_out_frames(std::exchange(left_out, 0)));
  };
  for (size_t i = 0; i < thread.frames.size(); ++i) {
    if (detail == StackDetail::full || i == 0 || thread.frames[i].is_project) {
      tell_left_out();
      lines.push_back("  " + frame_line(thread.frames[i]));
    } else {
      ++left_out;
    }
  }
  tell_left_out();
  return detail == StackDetail::full ? lines : without_repeats(lines);
}

std::string heading(const std::vector<const ThreadAtEnd*>& threads) {
  const ThreadAtEnd& first = *threads.front();
  if (threads.size() > 1) return fmt::format("{} threads were at", threads.size());
  return fmt::format("{} {} ({}) was at", first.is_main() ? "main thread" : "thread", first.tid,
                     one_line(first.name));
}

}  // namespace

std::string repeated_frame(const std::string& frame, size_t times) {
  return times > 1 ? fmt::format("{} ({} times)", frame, times) : frame;
}

std::string left_out_frames(size_t count) {
  return fmt::format("... {} of libraries", counted(static_cast<long long>(count), "frame"));
}

std::vector<std::string> timeout_stack_lines(const ProcessResult& process, StackDetail detail) {
  std::vector<std::vector<std::string>> order;
  std::map<std::vector<std::string>, std::vector<const ThreadAtEnd*>> groups;
  for (const ThreadAtEnd& thread : process.thread_stacks) {
    auto frames = frame_lines(thread, detail);
    auto& group = groups[frames];
    group.push_back(&thread);
    if (group.size() == 1) order.push_back(std::move(frames));
  }
  const size_t most = detail == StackDetail::full ? order.size() : most_stacks;
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(order.size(), most); ++i) {
    lines.push_back(heading(groups[order[i]]));
    lines.insert(lines.end(), order[i].begin(), order[i].end());
  }
  if (order.size() > most)
    lines.push_back(fmt::format("and {} more stacks, which --full shows", order.size() - most));
  return lines;
}

}  // namespace unflake
