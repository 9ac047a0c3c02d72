#include "report/markdown_text.h"

#include <algorithm>

#include "util/text.h"

namespace unflake {
namespace {

// Longer than any run of backticks inside: nothing in the text can end what it stands in.
std::string fence_for(std::string_view text, size_t shortest) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max(shortest, longest + 1), '`');
}

}  // namespace

std::string markdown_code(std::string_view text, size_t most) {
  const std::string safe = printable(shorten(trim(text), most));
  if (safe.empty()) return "-";
  std::string inside;
  for (const char c : safe) {
    if (c == '|') inside += '\\';  // a table is cut into cells before anything else is read
    inside += c;
  }
  const std::string fence = fence_for(inside, 1);
  const bool touches = inside.front() == '`' || inside.back() == '`';
  const std::string gap = touches ? " " : "";
  return fence + gap + inside + gap + fence;
}

std::string markdown_block(std::string_view text, size_t most) {
  const std::string safe = printable(shorten(text, most), LineFeeds::keep);
  const std::string fence = fence_for(safe, 3);
  return fence + "text\n" + safe + (safe.ends_with('\n') ? "" : "\n") + fence + "\n";
}

}  // namespace unflake
