#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "patch/literals/time_literal.h"
#include "patch/source/source_unit.h"
#include "util/time.h"

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

struct NewLiteral {
  Spot begin, end;  // of what it replaces
  std::string text;
};

// Another number in place of the one that gives the expression its value: in the same unit
// where that is a whole number, else in a finer one, else rounded up.
Result<NewLiteral> new_literal(const SourceUnit& unit, const TimeExpression& expression,
                               Duration value);

// `ts.tv_sec = 2;` and `ts.tv_sec += 2;`
struct FieldWrite {
  std::string field;
  bool in_it_value = true;  // false for the interval of a timer
  bool adds = false;
  CXCursor value;
};

struct VariableUse {
  std::set<std::pair<std::string, int>> places;  // file and line
  std::vector<int> changes;                      // lines
  std::vector<FieldWrite> field_writes;
  bool takes_clock = false;  // clock_gettime(CLOCK_REALTIME, &ts)
};

// What the unit's own code (no system headers) does with its variables, fields and parameters, and
// which calls it makes, by identity.
struct VariableUses {
  std::map<std::string, VariableUse> of;
  std::map<std::string, std::vector<CXCursor>> calls;
};

VariableUses variable_uses(const SourceUnit& unit);

struct FoundLiteral {
  TimeExpression time;  // what the call passes, in nanoseconds, with the numbers that it is made of
  std::string callee;
  bool is_guess = false;    // unknown callee: its number is taken to be in the unit that fits
  double unit = 0;          // nanoseconds of a plain number
  bool is_default = false;  // the call leaves its time out
};

// The time that the call passes. At least `wanted.value`, less than `most`.
Result<FoundLiteral> find_literal(const SourceUnit& unit, const VariableUses& uses,
                                  const WantedLiteral& wanted, Duration most);

// What else changes when the literal changes, for people; empty when nothing is known to.
std::string caution_of(const SourceUnit& unit, const VariableUses& uses, const FoundLiteral& found);

// The edit that should give the call its new time, before it is tried.
Result<SourceEdit> propose_edit(const SourceUnit& unit, const WantedLiteral& wanted,
                                Duration value);

// An argument that may be the time of a call.
struct TimeArgument {
  std::string callee;
  CXCursor expression;
  double unit = 0;          // nanoseconds of a plain number; 0 when the callee is not known
  bool is_known = true;     // a call that is known to end in the API
  bool is_default = false;  // left out in the call
};

// Calls that start on the line are nearest, then calls that span it, then those of the
// statement that does: line tables name any of these lines.
struct CallAtLine {
  CXCursor call;
  int distance = 0;
};
constexpr int most_call_distance = 2;

std::vector<CallAtLine> calls_at(const SourceUnit& unit, int line);

// The arguments of a call that may be a time for this API ("nanosleep", "poll"); none when the call
// is known to end in another one.
std::vector<TimeArgument> time_arguments(CXCursor call, const std::string& api);

// What the source says about an expression's value, through constants, variables that are never
// changed, and parameters, as the caller of this number passes them.
TimeExpression evaluate_time(const SourceUnit& unit, const VariableUses& uses, CXCursor expression,
                             size_t caller);

// What to evaluate where a call leaves an argument out.
std::optional<CXCursor> default_argument(CXCursor function, size_t index);
bool is_left_out(CXCursor argument);

}  // namespace unflake
