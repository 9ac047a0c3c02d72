#include "ingest/report_times.h"

#include <charconv>
#include <cmath>
#include <string>

#include "util/text.h"

namespace unflake {
namespace {

using std::chrono::sys_days;

constexpr double longest_seconds = 30 * 86400.0;
constexpr std::chrono::year first_year{1980}, last_year{2200};

// "1,234.5" and "1,234,567" have thousands; "0,25" and "12,5" a decimal comma.
std::string with_point(std::string_view text) {
  const size_t comma = text.find(',');
  const bool has_point = text.find('.') != std::string_view::npos;
  const size_t behind = text.size() - comma - 1;
  const bool is_decimal = !has_point && text.find(',', comma + 1) == std::string_view::npos &&
                          (behind != 3 || text.substr(0, comma) == "0");
  std::string plain;
  for (const char c : text)
    if (c != ',' || is_decimal) plain += c == ',' ? '.' : c;
  return plain;
}

// What a number of a fixed width is worth, and takes it off the text.
std::optional<int> take_number(std::string_view& text, size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + digits, value);
  if (failed != std::errc() || end != text.data() + digits || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

Duration take_fraction(std::string_view& text) {
  int64_t microseconds = 0, unit = 100'000;
  if (!take(text, ".,")) return Duration(0);
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), unit /= 10)
    microseconds += (text[0] - '0') * unit;
  return Duration(microseconds);
}

// "", "Z", "+02:00", "+0200", "+02"
std::optional<Duration> take_zone(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return Duration(0);
  const bool is_west = text[0] == '-';
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  take(text, ":");
  const auto minutes = text.empty() ? std::optional<int>(0) : take_number(text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 18 || *minutes > 59) return std::nullopt;
  const Duration zone = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return is_west ? -zone : zone;
}

std::optional<sys_days> take_date(std::string_view& text) {
  const auto year = take_number(text, 4);
  const bool first = take(text, "-");
  const auto month = take_number(text, 2);
  const bool second = take(text, "-");
  const auto day = take_number(text, 2);
  if (!year || !month || !day || !first || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || date.year() < first_year || date.year() > last_year) return std::nullopt;
  return sys_days(date);
}

}  // namespace

ReportedTime parse_seconds(std::string_view text) {
  text = trim(text);
  if (text.empty()) return {};
  const bool has_comma = text.find(',') != std::string_view::npos;
  const std::string plain = has_comma ? with_point(text) : std::string();
  if (has_comma) text = plain;
  double seconds = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (failed == std::errc::result_out_of_range) return {Duration(0), true};
  if (failed != std::errc() || (!unit.empty() && unit != "s") || std::isnan(seconds) || seconds < 0)
    return {Duration(0), true};
  if (seconds > longest_seconds)
    return {std::chrono::duration_cast<Duration>(std::chrono::days(30)), true};
  return {Duration(std::llround(seconds * 1e6)), false};
}

std::optional<TimePoint> parse_report_timestamp(std::string_view text) {
  text = trim(text);
  const auto date = take_date(text);
  if (!date) return std::nullopt;
  if (text.empty()) return TimePoint(*date);
  if (!take(text, "T t")) return std::nullopt;
  const auto hours = take_number(text, 2);
  const bool colon = take(text, ":");
  const auto minutes = take_number(text, 2);
  if (!hours || !minutes || !colon || *hours > 24 || *minutes > 59) return std::nullopt;
  const auto seconds = take(text, ":") ? take_number(text, 2) : std::optional<int>(0);
  if (!seconds || *seconds > 60) return std::nullopt;
  const Duration fraction = take_fraction(text);
  const auto zone = take_zone(text);
  if (!zone) return std::nullopt;
  return TimePoint(*date) + std::chrono::hours(*hours) + std::chrono::minutes(*minutes) +
         std::chrono::seconds(*seconds) + fraction - *zone;
}

std::optional<TimePoint> parse_epoch_seconds(std::string_view text) {
  text = trim(text);
  int64_t seconds = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = failed == std::errc() && end == text.data() + text.size();
  const TimePoint first = sys_days(first_year / 1 / 1), last = sys_days(last_year / 1 / 1);
  if (!is_number || seconds < first.time_since_epoch() / std::chrono::seconds(1) ||
      seconds > last.time_since_epoch() / std::chrono::seconds(1))
    return std::nullopt;
  return TimePoint(std::chrono::seconds(seconds));
}

}  // namespace unflake
