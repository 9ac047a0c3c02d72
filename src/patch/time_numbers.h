#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "patch/cursor.h"
#include "patch/number_text.h"

namespace unflake {

// What can be replaced together with a number when another number alone cannot say it:
// `std::chrono::seconds(1)` as a whole, or `200 * 1000` by its product.
struct WiderText {
  enum class Kind { construction, product } kind = Kind::product;
  Spot begin, end;
  double unit = 1;  // as TimeNumber::unit, of a number in the place of all this
};

// A number in the source that a time is computed from.
struct TimeNumber {
  enum class Field { none, seconds, fraction };

  Spot at;
  NumberText text;
  double unit = 1;               // what the time grows by when the number grows by one
  bool has_unit_suffix = false;  // `200ms`
  bool is_in_macro = false;      // in the body of one
  Field field = Field::none;     // of a timespec or timeval
  std::optional<WiderText> wider;
};

// What an expression is known to be from the source alone.
struct TimeExpression {
  enum class Kind { unknown, number, duration };

  Kind kind = Kind::unknown;
  double amount = 0;  // nanoseconds when it is a duration; a point in time counts from now
  std::vector<TimeNumber> numbers;
  std::string reason;             // why it is unknown: "`config.delay`, which is ..."
  std::vector<CXCursor> through;  // constants and variables that were looked into
  size_t callers = 1;             // that could have passed a parameter which it depends on

  bool is_known() const { return kind != Kind::unknown; }
};

TimeExpression unknown_time(std::string reason);
TimeExpression known_time(TimeExpression::Kind kind, double amount);

TimeExpression scaled(TimeExpression value, double factor);

// A plain number times a unit in nanoseconds; everything else stays what it is.
TimeExpression in_unit(TimeExpression number, double unit);

// `whole` is where the operation stands. Factors like 1000 only change the unit of the other side.
TimeExpression combine(char operation, TimeExpression left, TimeExpression right,
                       const SourceExtent& whole);

// A timespec or timeval that is filled field by field: 0 is seconds, 1 the rest.
class TimeStructure {
 public:
  explicit TimeStructure(const std::string& type);

  void initialise(size_t field, TimeExpression value);
  void assign(size_t field, TimeExpression value);
  void add(size_t field, TimeExpression value);

  TimeExpression value() const;

 private:
  std::array<TimeExpression, 2> fields_;
  std::array<bool, 2> is_assigned_{};
  double fraction_unit_;
};

}  // namespace unflake
