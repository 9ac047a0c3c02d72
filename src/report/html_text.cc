#include "report/html_text.h"

#include "util/text.h"

namespace unflake {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool starts_with_unit(std::string_view text) {
  for (const std::string_view unit : {"%", "us", "ms", "s"})
    if (text.starts_with(unit) && (text.size() == unit.size() || !is_letter(text[unit.size()])))
      return true;
  return false;
}

}  // namespace

std::string html_text(std::string_view text, size_t most) {
  std::string safe;
  for (const char c : printable(shorten(text, most))) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string html_prose(std::string_view text, size_t most) {
  const std::string safe = html_text(text, most);
  std::string prose;
  size_t at = 0;
  for (;;) {
    const size_t open = safe.find('`', at);
    const size_t close = open == std::string::npos ? open : safe.find('`', open + 1);
    if (close == std::string::npos) return prose + safe.substr(at);
    const std::string inside = safe.substr(open + 1, close - open - 1);
    const bool is_code = !inside.empty() && inside.front() != ' ' && inside.back() != ' ';
    prose += safe.substr(at, open - at);
    prose += is_code ? "<code>" + inside + "</code>" : "`";
    at = is_code ? close + 1 : open + 1;
  }
}

std::string html_cell(std::string_view text, size_t most) {
  constexpr std::string_view marks = "/.:_";  // none of them is in an entity
  const std::string safe = html_text(text, most);
  std::string cell;
  for (size_t i = 0; i < safe.size(); ++i) {
    const std::string_view rest = std::string_view(safe).substr(i + 1);
    const bool is_after_digit = i > 0 && safe[i - 1] >= '0' && safe[i - 1] <= '9';
    if (safe[i] == ' ' && is_after_digit && starts_with_unit(rest))
      cell += "&#160;";
    else
      cell += safe[i];
    if (marks.find(safe[i]) != std::string_view::npos && !rest.empty() && is_letter(rest[0]))
      cell += "<wbr/>";
  }
  return cell;
}

}  // namespace unflake
