#include "report/html_text.h"

#include "util/text.h"

namespace unflake {

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

}  // namespace unflake
