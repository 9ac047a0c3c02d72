#include "report/excerpt.h"

#include <algorithm>

#include "util/capture.h"
#include "util/text.h"

namespace unflake {
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
