#include "trace/message.h"

#include "trace/scan.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::string_view shown_indent = "  ";
constexpr size_t most_lines = 40;
constexpr size_t most_bytes_of_a_line = 1000;

}  // namespace

void Message::say(std::string_view line) {
  add("", trim(line));
}

void Message::show(std::string_view line) {
  add(shown_indent, trim(line));
}

void Message::add(std::string_view indent, std::string_view line) {
  if (line.empty() || lines_ == most_lines) return;
  ++lines_;
  if (!text_.empty()) text_ += '\n';
  text_ += indent;
  text_ += shorten(line, most_bytes_of_a_line);
}

std::string said_in(std::string_view message) {
  std::string said;
  for (LineReader in(message); !in.done(); in.advance()) {
    if (in.line().starts_with(shown_indent)) continue;
    if (!said.empty()) said += '\n';
    said += in.line();
  }
  return said;
}

}  // namespace unflake
