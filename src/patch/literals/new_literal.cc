#include "patch/literals/new_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "util/text.h"

namespace unflake {
namespace {

struct NamedUnit {
  std::string_view suffix, type;
  double nanoseconds;
};

constexpr NamedUnit units[] = {{"h", "hours", 3600e9},      {"min", "minutes", 60e9},
                               {"s", "seconds", 1e9},       {"ms", "milliseconds", 1e6},
                               {"us", "microseconds", 1e3}, {"ns", "nanoseconds", 1}};
constexpr double coarsest_rounding = 1e6;  // up to a whole millisecond, nothing longer
constexpr int most_lines_apart = 10;

bool is_whole(double count) {
  return std::abs(count - std::round(count)) < 1e-6;
}

double contribution(const TimeNumber& number) {
  return number.text.value * number.unit;
}

Spot end_of(const TimeNumber& number) {
  Spot end = number.at;
  end.offset += number.text.length;
  return end;
}

NewLiteral same_unit(const TimeNumber& number, double count) {
  return {number.at, end_of(number), in_the_shape_of(number.text, count)};
}

std::optional<NewLiteral> finer_suffix(const TimeNumber& number, double nanoseconds) {
  const auto current = std::find_if(std::begin(units), std::end(units), [&](const NamedUnit& unit) {
    return unit.suffix == number.text.suffix;
  });
  if (current == std::end(units)) return std::nullopt;
  const double times = number.unit / current->nanoseconds;
  for (auto finer = current + 1; finer < std::end(units); ++finer) {
    const double count = nanoseconds / (finer->nanoseconds * times);
    NumberText text = number.text;
    text.suffix = finer->suffix;
    if (is_whole(count)) return NewLiteral{number.at, end_of(number), in_the_shape_of(text, count)};
  }
  return std::nullopt;
}

// Whoever wrote `using std::chrono::seconds;` may need the others qualified.
std::string qualification(const SourceUnit& source, std::string_view type) {
  const std::string& text = source.text_of(source.file());
  const bool is_known = text.find("using namespace std::chrono;") != std::string::npos ||
                        text.find(fmt::format("using std::chrono::{};", type)) != std::string::npos;
  return is_known ? "" : "std::chrono::";
}

// `std::chrono::seconds(1)`, up to the number.
std::optional<NewLiteral> finer_type(const SourceUnit& source, const TimeNumber& number,
                                     double nanoseconds) {
  const std::string before = source.piece(number.wider->begin, number.at);
  const std::string after = source.piece(end_of(number), number.wider->end);
  for (size_t i = 0; i < std::size(units); ++i) {
    const size_t at = before.rfind(units[i].type);
    const bool is_word = at != std::string::npos && (at == 0 || before[at - 1] == ':');
    if (!is_word) continue;
    const double times = number.unit / units[i].nanoseconds;
    for (size_t finer = i + 1; finer < std::size(units); ++finer) {
      const double count = nanoseconds / (units[finer].nanoseconds * times);
      if (!is_whole(count)) continue;
      std::string text = before;
      text.replace(at, units[i].type.size(), units[finer].type);
      if (at == 0) text.insert(0, qualification(source, units[finer].type));
      return NewLiteral{number.wider->begin, number.wider->end,
                        text + in_the_shape_of(number.text, count) + after};
    }
  }
  return std::nullopt;
}

std::optional<NewLiteral> by_wider_text(const SourceUnit& source, const TimeNumber& number,
                                        double nanoseconds) {
  if (!number.wider) return std::nullopt;
  if (number.wider->kind == WiderText::Kind::construction)
    return finer_type(source, number, nanoseconds);
  const double count = nanoseconds / number.wider->unit;
  if (!is_whole(count)) return std::nullopt;
  return NewLiteral{number.wider->begin, number.wider->end, in_the_shape_of(number.text, count)};
}

Error too_coarse(const SourceUnit& source, const TimeNumber& number, double nanoseconds) {
  return usage_error(
      fmt::format("`{}` counts units of {}, so that it cannot become {}",
                  printable(source.piece(number.at, end_of(number))),
                  format_duration(Duration(std::llround(number.unit / 1e3))),
                  format_duration(Duration(std::llround(nanoseconds / 1e3)))),
      fmt::format("{}:{}", printable(number.at.file), number.at.line),
      "change the call to one with a finer unit (usleep, std::this_thread::sleep_for)");
}

Result<NewLiteral> replacement(const SourceUnit& source, const TimeNumber& number,
                               double nanoseconds) {
  const double count = nanoseconds / number.unit;
  if (number.field == TimeNumber::Field::fraction && nanoseconds >= 1e9)
    return usage_error("the part below a second cannot hold a second or more",
                       fmt::format("{}:{}", printable(number.at.file), number.at.line),
                       "change the seconds by hand");
  if (is_whole(count) || number.text.is_floating) return same_unit(number, count);
  if (number.has_unit_suffix)
    if (auto found = finer_suffix(number, nanoseconds)) return *found;
  if (auto found = by_wider_text(source, number, nanoseconds)) return *found;
  const double up = std::ceil(count);
  if (number.unit > coarsest_rounding || up == number.text.value)
    return too_coarse(source, number, nanoseconds);
  return same_unit(number, up);
}

// One edit for the fields of a timespec, with what is between them.
Result<NewLiteral> joined(const SourceUnit& source, NewLiteral first, NewLiteral second) {
  if (second.begin.offset < first.begin.offset) std::swap(first, second);
  const bool is_near = first.begin.file == second.begin.file &&
                       second.begin.line - first.begin.line <= most_lines_apart &&
                       first.end.offset <= second.begin.offset;
  if (!is_near)
    return usage_error("seconds and their fraction come from literals that are far apart",
                       fmt::format("{}:{}", printable(first.begin.file), first.begin.line),
                       "change them by hand");
  return NewLiteral{first.begin, second.end,
                    first.text + source.piece(first.end, second.begin) + second.text};
}

Result<NewLiteral> of_two_fields(const SourceUnit& source, const TimeNumber& seconds,
                                 const TimeNumber& fraction, double nanoseconds) {
  const double whole = std::floor(nanoseconds / 1e9) * 1e9;
  auto first = replacement(source, seconds, whole);
  if (!first) return first.error();
  auto second = replacement(source, fraction, nanoseconds - whole);
  if (!second) return second.error();
  if (contribution(seconds) == whole) return second;
  if (contribution(fraction) == nanoseconds - whole) return first;
  return joined(source, *first, *second);
}

Error several(const SourceUnit& source, const std::vector<TimeNumber>& numbers) {
  std::vector<std::string> texts;
  for (const TimeNumber& number : numbers)
    texts.push_back("`" + source.piece(number.at, end_of(number)) + "`");
  return usage_error("the time is made of several literals: " + printable(join(texts, ", ")),
                     fmt::format("{}:{}", printable(numbers[0].at.file), numbers[0].at.line),
                     "change the one that you mean by hand");
}

bool are_two_fields(const std::vector<TimeNumber>& numbers) {
  return numbers.size() == 2 && numbers[0].field == TimeNumber::Field::seconds &&
         numbers[1].field == TimeNumber::Field::fraction;
}

}  // namespace

Result<NewLiteral> new_literal(const SourceUnit& unit, const TimeExpression& expression,
                               Duration value) {
  const auto& numbers = expression.numbers;
  const double nanoseconds = static_cast<double>(value.count()) * 1e3;
  if (numbers.size() > 1 && !are_two_fields(numbers)) return several(unit, numbers);
  double rest = expression.amount;
  for (const TimeNumber& number : numbers) rest -= contribution(number);
  if (numbers[0].unit <= 0 || nanoseconds < rest) return several(unit, numbers);
  return numbers.size() == 1 ? replacement(unit, numbers[0], nanoseconds - rest)
                             : of_two_fields(unit, numbers[0], numbers[1], nanoseconds - rest);
}

}  // namespace unflake
