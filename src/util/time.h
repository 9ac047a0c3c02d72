#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake {

using Duration = std::chrono::microseconds;

using TimePoint = std::chrono::system_clock::time_point;

// "250ms", "1.5s", "5m", "2h", "80us"; a bare number is seconds.
Result<Duration> parse_duration(std::string_view text);

// For what is mostly meant in milliseconds: a bare number is refused unless it is 0.
Result<Duration> parse_duration_with_unit(std::string_view text);

// Three significant digits in the unit that reads best: "80 us", "12.3 ms", "4.56 s", "3m 20s".
std::string format_duration(Duration duration);

// Exact and without blanks, so that it can be read back: "200ms", "80us".
std::string duration_word(Duration duration);

// For what took an unknown time, which is not none.
inline constexpr Duration unknown_duration{-1};

// As format_duration(); "-" when it is not known.
inline std::string format_known_duration(Duration duration) {
  return duration == unknown_duration ? "-" : format_duration(duration);
}

// A calendar day in UTC.
using Day = std::chrono::sys_days;

// "2026-03-01" and nothing else; a day that does not exist is none.
std::optional<Day> parse_day(std::string_view text);

std::string format_day(Day day);

inline Day day_of(TimePoint time) {
  return std::chrono::floor<std::chrono::days>(time);
}

// "2026-03-01T12:00:00.250000Z"
std::string timestamp(TimePoint time);

// "2026-03-01T12:00:00Z"
std::string timestamp_in_seconds(TimePoint time);

// "2026-03-01 12:00", UTC too: for people, in a table that says so.
std::string timestamp_in_minutes(TimePoint time);

}  // namespace unflake
