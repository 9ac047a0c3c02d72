#include "report/style.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/known_duration.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t status_columns = 13;  // CRASH SIGSEGV
constexpr size_t longest_line = 500;

std::string_view escape_sequence(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "\x1b[1m";
    case Tone::good:
      return "\x1b[1;32m";
    case Tone::bad:
      return "\x1b[1;31m";
    case Tone::doubtful:
      return "\x1b[1;33m";
    case Tone::faint:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

std::string Style::paint(Tone tone, std::string_view text) const {
  if (!colour_) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_sequence(tone), text);
}

std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::optional<Duration> duration, std::string_view text) {
  return status_line(style, tone, status,
                     duration ? format_known_duration(*duration) : std::string(), text);
}

std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::string_view duration, std::string_view text) {
  const size_t indent = status_columns - std::min(status_columns, status.size());
  std::string line(indent, ' ');
  line += style.paint(tone, status);
  if (!duration.empty()) line += fmt::format(" [{:>7}]", duration);
  return fmt::format("{} {}\n", line, text);
}

std::string detail_line(std::string_view text) {
  return fmt::format("{:{}} {}\n", "", status_columns, text);
}

std::string one_line(std::string_view text) {
  return shorten(printable(shorten(text, longest_line)), longest_line);
}

std::string counted(long long number, std::string_view singular) {
  return fmt::format("{} {}{}", number, singular, number == 1 ? "" : "s");
}

}  // namespace unflake
