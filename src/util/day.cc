#include "util/day.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace unflake {
namespace {

int number(std::string_view digits) {
  int value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

}  // namespace

std::optional<Day> parse_day(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  const auto fits = [](char is, char wanted) {
    return wanted == 'd' ? std::isdigit(static_cast<unsigned char>(is)) != 0 : is == wanted;
  };
  if (!std::ranges::equal(text, form, fits)) return std::nullopt;
  const std::chrono::year_month_day day{
      std::chrono::year(number(text.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(number(text.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(number(text.substr(8, 2))))};
  if (!day.ok()) return std::nullopt;
  return Day(day);
}

std::string format_day(Day day) {
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02}", int(date.year()), unsigned(date.month()),
                     unsigned(date.day()));
}

}  // namespace unflake
