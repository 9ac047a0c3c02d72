#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "patch/source/libclang.h"

namespace unflake {

// A numeric literal as it is written: "200", "200'000u", "0.5", and "200ms" with its suffix.
struct NumberText {
  double value = 0;
  size_t length = 0;  // with the suffix
  std::string suffix;
  bool is_floating = false;
  bool has_separators = false;
};

// The literal at the beginning of the text.
std::optional<NumberText> number_at_start(std::string_view text);

// Another number in the same shape. Only for whole numbers, unless the shape is floating.
std::string in_the_shape_of(const NumberText& shape, double value);

// By the name of a type without aliases, as libclang spells it.

// Nanoseconds of what a std::chrono::duration (or boost's) counts.
std::optional<double> duration_unit(const std::string& type);

// A duration or a point in time.
bool is_time_type(const std::string& type);

// timespec, timeval and the timers that are made of two of them.
bool is_time_structure(const std::string& type);
bool is_timer_structure(const std::string& type);

// Counts in floating point: every time can be written.
bool is_floating_duration(const std::string& type);

// What can be replaced together with a number when another number alone cannot say it:
// `std::chrono::seconds(1)` as a whole, or `200 * 1000` by its product.
struct WiderText {
  enum class Kind { construction, product } kind = Kind::product;
  Spot begin, end;
  double unit = 1;  // as TimeNumber::unit, of a number in place of all this
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

// `whole` is where the operation is. Factors like 1000 only change the unit of the other side.
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
