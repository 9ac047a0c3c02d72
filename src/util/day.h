#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace unflake {

// A calendar day in UTC.
using Day = std::chrono::sys_days;

// "2026-03-01" and nothing else; a day that no calendar has is none.
std::optional<Day> parse_day(std::string_view text);

std::string format_day(Day day);

inline Day day_of(std::chrono::system_clock::time_point time) {
  return std::chrono::floor<std::chrono::days>(time);
}

}  // namespace unflake
