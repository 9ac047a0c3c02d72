#include "patch/literals/literal_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "util/text.h"

namespace unflake {
namespace {

int base_of(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  if (text[1] == 'x' || text[1] == 'X') return 16;
  if (text[1] == 'b' || text[1] == 'B') return 2;
  return is_digit(text[1]) ? 8 : 10;
}

// Hexadecimal, octal and binary numbers, which have whole values only.
std::optional<double> other_base(std::string_view digits, int base) {
  uint64_t value = 0;
  const auto from = digits.substr(base == 8 ? 1 : 2);
  const auto [end, failed] = std::from_chars(from.data(), from.data() + from.size(), value, base);
  if (failed != std::errc() || end != from.data() + from.size()) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> decimal(std::string_view digits) {
  double value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool belongs_to_digits(std::string_view text, size_t at, int base) {
  const char c = text[at];
  if (base == 16 && at > 1) return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  if (base != 10) return is_digit(c) || at == 1;
  const bool exponent = (c == 'e' || c == 'E') && at + 1 < text.size() &&
                        (is_digit(text[at + 1]) || text[at + 1] == '-' || text[at + 1] == '+');
  const bool sign = (c == '-' || c == '+') && (text[at - 1] == 'e' || text[at - 1] == 'E');
  return is_digit(c) || c == '.' || exponent || sign;
}

std::string with_separators(std::string digits) {
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, '\'');
  return digits;
}

}  // namespace

std::optional<NumberText> number_at_start(std::string_view text) {
  if (text.empty() || !(is_digit(text[0]) || text[0] == '.')) return std::nullopt;
  const int base = base_of(text);
  NumberText number;
  std::string digits;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '\'') {
      number.has_separators = true;
    } else if (at == 0 || belongs_to_digits(text, at, base)) {
      digits += text[at];
    } else {
      break;
    }
  }
  const size_t suffix = at;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
    ++at;
  number.suffix = text.substr(suffix, at - suffix);
  number.length = at;
  number.is_floating = base == 10 && digits.find_first_of(".eE") != std::string::npos;
  const auto value = base == 10 ? decimal(digits) : other_base(digits, base);
  if (!value) return std::nullopt;
  number.value = *value;
  return number;
}

std::string in_the_shape_of(const NumberText& shape, double value) {
  if (!shape.is_floating) {
    const std::string digits = fmt::format("{}", std::llround(value));
    return (shape.has_separators ? with_separators(digits) : digits) + shape.suffix;
  }
  std::string digits = fmt::format("{:.12g}", value);  // 0.053, not 0.05299999999999999
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + shape.suffix;
}

namespace {

bool is_template(std::string_view type, std::string_view name) {
  const std::string_view plain = type.substr(0, type.find('<'));
  return plain.size() < type.size() && plain.ends_with(name);
}

bool is_structure(std::string_view type, std::string_view name) {
  return type == name || (type.starts_with("struct ") && type.substr(7) == name);
}

double number_in(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::optional<double> duration_unit(const std::string& type) {
  if (!is_template(type, "chrono::duration")) return std::nullopt;
  const size_t ratio = type.find("ratio<");
  if (ratio == std::string::npos) return 1e9;
  const std::string_view terms = std::string_view(type).substr(ratio + 6);
  const size_t comma = terms.find(", ");
  const size_t close = terms.find('>');
  const bool has_two = comma != std::string_view::npos && comma < close;
  const double divisor = has_two ? number_in(terms.substr(comma + 2)) : 1;
  const double unit = divisor > 0 ? number_in(terms) * 1e9 / divisor : 0;
  return unit > 0 ? std::optional(unit) : std::nullopt;
}

bool is_time_type(const std::string& type) {
  return is_template(type, "chrono::duration") || is_template(type, "chrono::time_point");
}

bool is_timer_structure(const std::string& type) {
  return is_structure(type, "itimerspec") || is_structure(type, "itimerval");
}

bool is_time_structure(const std::string& type) {
  return is_structure(type, "timespec") || is_structure(type, "timeval") ||
         is_timer_structure(type);
}

bool is_floating_duration(const std::string& type) {
  const auto counts_in = [&](std::string_view number) {
    return std::string_view(type).substr(type.find('<') + 1).starts_with(number);
  };
  return counts_in("double") || counts_in("float") || counts_in("long double");
}

namespace {

using Kind = TimeExpression::Kind;

// Between units of time, as in `200 * 1000` microseconds.
bool is_factor(const TimeNumber& number) {
  const double value = number.text.value;
  return !number.has_unit_suffix && (value == 60 || value == 1e3 || value == 1e6 || value == 1e9);
}

bool has_only_factors(const TimeExpression& value) {
  return std::all_of(value.numbers.begin(), value.numbers.end(), is_factor);
}

void note_product(TimeExpression& value, const SourceExtent& whole) {
  if (value.kind != Kind::number || value.numbers.size() != 1) return;
  TimeNumber& number = value.numbers[0];
  const bool holds = whole.begin.file == number.at.file && whole.end.file == number.at.file &&
                     whole.begin.offset <= number.at.offset &&
                     number.at.offset + number.text.length <= whole.end.offset;
  if (holds && !number.is_in_macro)
    number.wider = WiderText{WiderText::Kind::product, whole.begin, whole.end, 1};
}

void append(std::vector<TimeNumber>& to, const std::vector<TimeNumber>& numbers) {
  to.insert(to.end(), numbers.begin(), numbers.end());
}

TimeExpression result_of(const TimeExpression& left, const TimeExpression& right, double amount) {
  const bool is_duration = left.kind == Kind::duration || right.kind == Kind::duration;
  TimeExpression result = known_time(is_duration ? Kind::duration : Kind::number, amount);
  result.callers = std::max(left.callers, right.callers);
  result.through = left.through;
  result.through.insert(result.through.end(), right.through.begin(), right.through.end());
  return result;
}

TimeExpression sum(const TimeExpression& left, const TimeExpression& right) {
  TimeExpression result = result_of(left, right, left.amount + right.amount);
  result.numbers = left.numbers;
  append(result.numbers, right.numbers);
  return result;
}

TimeExpression product(const TimeExpression& left, const TimeExpression& right,
                       const SourceExtent& whole) {
  TimeExpression result = result_of(left, right, left.amount * right.amount);
  const auto of_left = scaled(left, right.amount).numbers;
  const auto of_right = scaled(right, left.amount).numbers;
  if (has_only_factors(right) && !left.numbers.empty()) {
    result.numbers = of_left;
  } else if (has_only_factors(left)) {
    result.numbers = of_right;
  } else {
    result.numbers = of_left;
    append(result.numbers, of_right);
  }
  note_product(result, whole);
  return result;
}

TimeExpression quotient(const TimeExpression& left, const TimeExpression& right) {
  if (right.amount == 0) return unknown_time("a division by zero");
  TimeExpression result = result_of(left, right, left.amount / right.amount);
  if (left.kind == Kind::duration && right.kind == Kind::duration) result.kind = Kind::number;
  result.numbers = scaled(left, 1 / right.amount).numbers;
  if (!has_only_factors(right)) append(result.numbers, scaled(right, 0).numbers);
  return result;
}

}  // namespace

TimeExpression unknown_time(std::string reason) {
  TimeExpression value;
  value.reason = std::move(reason);
  return value;
}

TimeExpression known_time(Kind kind, double amount) {
  TimeExpression value;
  value.kind = kind;
  value.amount = amount;
  return value;
}

TimeExpression scaled(TimeExpression value, double factor) {
  value.amount *= factor;
  for (TimeNumber& number : value.numbers) {
    number.unit *= factor;
    if (number.wider) number.wider->unit *= factor;
  }
  return value;
}

TimeExpression in_unit(TimeExpression number, double unit) {
  if (number.kind != Kind::number) return number;
  number = scaled(std::move(number), unit);
  number.kind = Kind::duration;
  return number;
}

TimeExpression combine(char operation, TimeExpression left, TimeExpression right,
                       const SourceExtent& whole) {
  if (!left.is_known()) return left;
  if (!right.is_known()) return right;
  switch (operation) {
    case '+':
      return sum(left, right);
    case '-':
      return sum(left, scaled(std::move(right), -1));
    case '*':
      return product(left, right, whole);
    default:
      return quotient(left, right);
  }
}

TimeStructure::TimeStructure(const std::string& type)
    : fields_{known_time(Kind::number, 0), known_time(Kind::number, 0)},
      fraction_unit_(type.ends_with("val") ? 1e3 : 1) {}

void TimeStructure::initialise(size_t field, TimeExpression value) {
  fields_[field] = std::move(value);
}

void TimeStructure::assign(size_t field, TimeExpression value) {
  fields_[field] = is_assigned_[field] ? unknown_time("a field that is assigned at several places")
                                       : std::move(value);
  is_assigned_[field] = true;
}

void TimeStructure::add(size_t field, TimeExpression value) {
  fields_[field] = combine('+', std::move(fields_[field]), std::move(value), {});
}

TimeExpression TimeStructure::value() const {
  TimeExpression seconds = in_unit(fields_[0], 1e9);
  TimeExpression fraction = in_unit(fields_[1], fraction_unit_);
  for (TimeNumber& number : seconds.numbers) number.field = TimeNumber::Field::seconds;
  for (TimeNumber& number : fraction.numbers) number.field = TimeNumber::Field::fraction;
  return combine('+', std::move(seconds), std::move(fraction), {});
}

}  // namespace unflake
