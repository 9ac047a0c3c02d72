#include "cli/times.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "util/text.h"

namespace unflake {
namespace {

namespace chrono = std::chrono;

Error not_a_time(std::string_view text) {
  return usage_error(fmt::format("'{}' is not a time", printable(shorten(text, 100))), "",
                     "write a date, as 2026-03-01, or a time, as 2026-03-01T12:00:00Z (UTC)");
}

// Reads fields of fixed width from the front of a text.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  std::optional<int> number(size_t width) {
    int value = 0;
    if (rest_.size() < width) return std::nullopt;
    const char* end = rest_.data() + width;
    const auto [stop, failed] = std::from_chars(rest_.data(), end, value);
    if (failed != std::errc() || stop != end || value < 0) return std::nullopt;
    rest_.remove_prefix(width);
    return value;
  }

  bool skip(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::optional<chrono::sys_days> read_day(FieldReader& fields) {
  const auto year = fields.number(4);
  if (!year || !fields.skip("-")) return std::nullopt;
  const auto month = fields.number(2);
  if (!month || !fields.skip("-")) return std::nullopt;
  const auto day = fields.number(2);
  if (!day || *year < 1970 || *year > 2200) return std::nullopt;
  const chrono::year_month_day date{chrono::year(*year),
                                    chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return chrono::sys_days(date);
}

std::optional<chrono::seconds> read_time_of_day(FieldReader& fields) {
  if (fields.at_end()) return chrono::seconds(0);
  if (!fields.skip("T ")) return std::nullopt;
  const auto hour = fields.number(2);
  if (!hour || *hour > 23 || !fields.skip(":")) return std::nullopt;
  const auto minute = fields.number(2);
  if (!minute || *minute > 59) return std::nullopt;
  std::optional<int> second = 0;
  if (fields.skip(":")) second = fields.number(2);
  if (!second || *second > 60) return std::nullopt;
  fields.skip("Z");
  return chrono::hours(*hour) + chrono::minutes(*minute) + chrono::seconds(*second);
}

}  // namespace

Result<chrono::system_clock::time_point> parse_time(std::string_view text) {
  FieldReader fields(trim(text));
  const auto day = read_day(fields);
  if (!day) return not_a_time(text);
  const auto time = read_time_of_day(fields);
  if (!time || !fields.at_end()) return not_a_time(text);
  return chrono::system_clock::time_point(*day + *time);
}

}  // namespace unflake
