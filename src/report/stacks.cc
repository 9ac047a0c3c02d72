#include "report/stacks.h"

#include <fmt/format.h>

#include <map>

#include "report/style.h"
#include "util/base_name.h"

namespace unflake {
namespace {

constexpr size_t most_frames = 12;
constexpr size_t most_stacks = 16;

std::string frame_line(const ThreadAtEnd::Frame& frame) {
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) text += fmt::format(" {}:{}", base_name(frame.file), frame.line);
  return one_line(text);
}

std::vector<std::string> frame_lines(const ThreadAtEnd& thread) {
  std::vector<std::string> lines;
  if (thread.frames.empty()) lines.push_back("  no stack: " + one_line(thread.why_empty));
  for (const ThreadAtEnd::Frame& frame : thread.frames) {
    if (lines.size() == most_frames) {
      lines.push_back(fmt::format("  ... {} more", thread.frames.size() - most_frames));
      break;
    }
    lines.push_back("  " + frame_line(frame));
  }
  return lines;
}

std::string heading(const std::vector<const ThreadAtEnd*>& threads) {
  const ThreadAtEnd& first = *threads.front();
  if (threads.size() > 1) return fmt::format("{} threads were at", threads.size());
  return fmt::format("{} {} ({}) was at", first.is_main() ? "main thread" : "thread", first.tid,
                     one_line(first.name));
}

}  // namespace

std::vector<std::string> timeout_stack_lines(const ProcessResult& process) {
  std::vector<std::vector<std::string>> order;
  std::map<std::vector<std::string>, std::vector<const ThreadAtEnd*>> groups;
  for (const ThreadAtEnd& thread : process.thread_stacks) {
    auto frames = frame_lines(thread);
    auto& group = groups[frames];
    group.push_back(&thread);
    if (group.size() == 1) order.push_back(std::move(frames));
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(order.size(), most_stacks); ++i) {
    lines.push_back(heading(groups[order[i]]));
    lines.insert(lines.end(), order[i].begin(), order[i].end());
  }
  if (order.size() > most_stacks)
    lines.push_back(fmt::format("and {} more stacks", order.size() - most_stacks));
  return lines;
}

}  // namespace unflake
