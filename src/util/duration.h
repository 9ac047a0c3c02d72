#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake {

using Duration = std::chrono::microseconds;

// "250ms", "1.5s", "5m", "2h", "80us"; a bare number is seconds.
Result<Duration> parse_duration(std::string_view text);

// For what is mostly meant in milliseconds: a bare number is refused unless it is 0.
Result<Duration> parse_duration_with_unit(std::string_view text);

// Three significant digits in the unit that reads best: "80 us", "12.3 ms", "4.56 s", "3m 20s".
std::string format_duration(Duration duration);

// Exact and without blanks, so that it can be read back: "200ms", "80us".
std::string duration_word(Duration duration);

}  // namespace unflake
