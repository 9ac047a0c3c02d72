#include "util/time.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include "util/text.h"

namespace unflake {
namespace {

struct Unit {
  std::string_view name;
  double microseconds;
};

constexpr Unit units[] = {{"us", 1},   {"ms", 1e3},   {"s", 1e6},    {"", 1e6},
                          {"m", 60e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}};

Error not_a_duration(std::string_view text) {
  return usage_error(fmt::format("'{}' is not a duration", printable(text)), "",
                     "write a number with a unit: 80us, 250ms, 1.5s, 5m, 2h, 90d");
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  text = trim(text);
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = failed == std::errc() && std::isfinite(number) && number >= 0;
  if (!is_number) return not_a_duration(text);
  const std::string_view suffix = trim(text.substr(static_cast<size_t>(end - text.data())));
  for (const Unit& unit : units) {
    if (unit.name != suffix) continue;
    const double total = number * unit.microseconds;
    if (total > 1e15) return not_a_duration(text);
    return Duration(std::llround(total));
  }
  return not_a_duration(text);
}

Result<Duration> parse_duration_with_unit(std::string_view text) {
  auto duration = parse_duration(text);
  const bool has_unit = !text.empty() && text.back() >= 'a' && text.back() <= 'z';
  if (!duration || has_unit || *duration == Duration::zero()) return duration;
  const std::string number = printable(trim(text));
  return usage_error(fmt::format("'{}' has no unit", number), "",
                     fmt::format("write {0}ms or {0}s", number));
}

std::string format_duration(Duration duration) {
  const double us = static_cast<double>(duration.count());
  const auto three_digits = [](double value, std::string_view unit) {
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
  };
  if (us < 999.5) return fmt::format("{} us", duration.count());
  if (us < 999.5e3) return three_digits(us / 1e3, "ms");
  if (us < 99.5e6) return three_digits(us / 1e6, "s");
  const auto seconds = std::llround(us / 1e6);
  if (seconds < 3600) return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h {:02}m", seconds / 3600, seconds % 3600 / 60);
}

std::string duration_word(Duration duration) {
  if (duration.count() % 1000 == 0) return fmt::format("{}ms", duration.count() / 1000);
  return fmt::format("{}us", duration.count());
}

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

namespace {

using Seconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;

Seconds whole_seconds(TimePoint time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

std::tm in_utc(Seconds seconds) {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(seconds));
}

}  // namespace

std::string timestamp(TimePoint time) {
  const Seconds seconds = whole_seconds(time);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", in_utc(seconds), rest.count());
}

std::string timestamp_in_seconds(TimePoint time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", in_utc(whole_seconds(time)));
}

std::string timestamp_in_minutes(TimePoint time) {
  return fmt::format("{:%Y-%m-%d %H:%M}", in_utc(whole_seconds(time)));
}

}  // namespace unflake
