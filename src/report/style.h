#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "util/duration.h"

namespace unflake {

enum class Tone { plain, good, bad, doubtful, faint };

class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}
  std::string paint(Tone tone, std::string_view text) const;

 private:
  bool colour_;
};

// A status word in its column, a duration in its own when there is one, and the text; ends the
// line.
std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::optional<Duration> duration, std::string_view text);

// The same with other words in the duration's place.
std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::string_view duration, std::string_view text);

// A line that explains the status line above it.
std::string detail_line(std::string_view text);

// Names and messages come from tests: made safe for one line of a terminal, and bounded.
std::string one_line(std::string_view text);

// "1 run", "2 runs".
std::string counted(long long number, std::string_view singular);

}  // namespace unflake
