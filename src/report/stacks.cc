#include "report/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "report/layout.h"
#include "util/capture.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_stacks = 16;

std::string frame_line(const ThreadAtEnd::Frame& frame) {
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) text += fmt::format(" {}:{}", base_name(frame.file), frame.line);
  return one_line(text);
}

// A function that calls itself endlessly fills a stack with one line.
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

namespace {

constexpr size_t longest_line = 500;

// Bytes of the colour sequence (ESC [ digits ; m) that starts the text, 0 when none does.
size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

// Tests that insist on colours stay readable: escaped, the sequences would bury the text.
std::string without_colours(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t escape = std::min(text.find('\x1b'), text.size());
    plain += text.substr(0, escape);
    text.remove_prefix(escape);
    if (text.empty()) break;
    const size_t length = colour_length(text);
    if (length == 0) plain += text[0];
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return plain;
}

// Where the last `most` lines of a text without a final line feed start.
size_t start_of_last_lines(std::string_view text, size_t most) {
  size_t start = text.size();
  for (size_t i = 0; i < most; ++i) {
    if (start == 0) return 0;
    const size_t feed = text.rfind('\n', start - 1);
    if (feed == std::string_view::npos) return 0;
    start = feed;
  }
  return start + 1;
}

}  // namespace

Excerpt last_lines(const ProcessResult& process, size_t most) {
  const std::string all = whole_output(process);
  const std::string_view text = trim(all).empty() ? std::string_view() : all;
  const size_t end = text.find_last_not_of("\r\n");
  if (end == std::string_view::npos) return {};
  const std::string_view body = text.substr(0, end + 1);
  const size_t start = start_of_last_lines(body, most);
  Excerpt excerpt;
  excerpt.left_out = static_cast<uint64_t>(std::count(body.begin(), body.begin() + start, '\n'));
  if (process.output.dropped() > 0 && start > process.output.head.size())
    excerpt.left_out_bytes = process.output.total + process.errors.total - (all.size() - start);
  for (const std::string_view line : split_lines(body.substr(start)))
    excerpt.lines.push_back(printable(shorten(without_colours(line), longest_line)));
  return excerpt;
}

std::string printable_output(const ProcessResult& process, size_t most) {
  return printable(cut_middle(without_colours(whole_output(process)), most), LineFeeds::keep);
}

std::string bounded_text(std::string_view text, size_t most) {
  return printable(shorten(text, most), LineFeeds::keep);
}

}  // namespace unflake
