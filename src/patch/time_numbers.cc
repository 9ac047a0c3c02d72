#include "patch/time_numbers.h"

#include <algorithm>
#include <cmath>

namespace unflake {
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
