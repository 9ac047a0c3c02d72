
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "patch/literals/literal_parts.h"
#include "util/paths.h"
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

namespace {

bool is_reference(CXCursor cursor) {
  const CXCursorKind kind = clang().getCursorKind(cursor);
  return kind == CXCursor_DeclRefExpr || kind == CXCursor_MemberRefExpr;
}

bool is_call(CXCursor cursor) {
  return clang().getCursorKind(cursor) == CXCursor_CallExpr;
}

bool is_assigning(const std::string& name) {
  constexpr std::string_view names[] = {"operator=",  "operator+=", "operator-=", "operator*=",
                                        "operator/=", "operator++", "operator--"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_assignment(CXCursor cursor) {
  const CXCursorKind kind = clang().getCursorKind(cursor);
  if (kind == CXCursor_CompoundAssignOperator) return true;
  if (kind == CXCursor_CallExpr) return is_assigning(spelling(cursor));
  return kind == CXCursor_BinaryOperator &&
         clang().getCursorBinaryOperatorKind(cursor) == CXBinaryOperator_Assign;
}

bool is_stepping_or_address(CXCursor cursor) {
  if (clang().getCursorKind(cursor) != CXCursor_UnaryOperator) return false;
  switch (clang().getCursorUnaryOperatorKind(cursor)) {
    case CXUnaryOperator_PostInc:
    case CXUnaryOperator_PostDec:
    case CXUnaryOperator_PreInc:
    case CXUnaryOperator_PreDec:
    case CXUnaryOperator_AddrOf:
      return true;
    default:
      return false;
  }
}

bool is_const(CXCursor reference) {
  return clang().isConstQualifiedType(clang().getCursorType(reference)) != 0;
}

// An argument that is neither a copy nor const, which would be wrapped, can be changed by the
// call.
bool is_passed_to_change(CXCursor reference, CXCursor call, bool is_first) {
  return is_call(call) && !is_first && !is_const(reference);
}

class Collector {
 public:
  void visit_all(CXCursor root) {
    for (const CXCursor child : children(root))
      if (clang().Location_isInSystemHeader(clang().getCursorLocation(child)) == 0)
        visit(child, root, false, 0);
  }

  VariableUses found;

 private:
  void visit(CXCursor cursor, CXCursor parent, bool is_first, int level) {
    if (level > deepest_syntax) return;
    if (is_reference(cursor)) note_reference(cursor, parent, is_first);
    if (is_call(cursor)) note_call(cursor);
    if (is_assignment(cursor)) note_field(cursor);
    bool first = true;
    for (const CXCursor child : children(cursor)) {
      visit(child, cursor, first, level + 1);
      first = false;
    }
  }

  void note_reference(CXCursor cursor, CXCursor parent, bool is_first) {
    const std::string name = identity(clang().getCursorReferenced(cursor));
    if (name.empty()) return;
    VariableUse& use = found.of[name];
    const Spot spot = spelled_at(clang().getCursorLocation(cursor));
    use.places.insert({spot.file, spot.line});
    const bool is_address = is_stepping_or_address(parent) && !is_time_structure(type_name(cursor));
    const bool is_target = is_first && is_assignment(parent);
    if (is_target || is_address || is_passed_to_change(cursor, parent, is_first))
      use.changes.push_back(spot.line);
  }

  void note_call(CXCursor call) {
    const std::string name = spelling(call);
    found.calls[identity(clang().getCursorReferenced(call))].push_back(call);
    if (name != "clock_gettime" && name != "gettimeofday" && name != "timespec_get") return;
    for (const CXCursor argument : arguments(call)) {
      const std::string variable = identity(clang().getCursorReferenced(last_reference(argument)));
      if (!variable.empty()) found.of[variable].takes_clock = true;
    }
  }

  static CXCursor last_reference(CXCursor cursor) {
    for (int level = 0; level < 8 && !is_reference(cursor); ++level) {
      const auto inside = operands(cursor);
      if (inside.empty()) break;
      cursor = inside.back();
    }
    return cursor;
  }

  void note_field(CXCursor assignment) {
    const auto sides = operands(assignment);
    if (sides.size() != 2 || clang().getCursorKind(sides[0]) != CXCursor_MemberRefExpr) return;
    const CXBinaryOperatorKind how = clang().getCursorBinaryOperatorKind(assignment);
    // `ts.tv_nsec -= 1000000000` carries a second over, which does not change the time.
    if (how != CXBinaryOperator_Assign && how != CXBinaryOperator_AddAssign) return;
    FieldWrite write{spelling(sides[0]), true, how == CXBinaryOperator_AddAssign, sides[1]};
    CXCursor base = sides[0];
    while (clang().getCursorKind(base) == CXCursor_MemberRefExpr) {
      if (spelling(base) == "it_interval") write.in_it_value = false;
      const auto inside = operands(base);
      if (inside.empty()) return;
      base = inside.front();
    }
    found.of[identity(clang().getCursorReferenced(base))].field_writes.push_back(write);
  }
};

}  // namespace

VariableUses variable_uses(const SourceUnit& unit) {
  Collector collector;
  collector.visit_all(unit.root());
  return std::move(collector.found);
}

namespace {

using Kind = TimeExpression::Kind;

// A number whose unit only the callee knows may be any of these.
constexpr double guessed_units[] = {1e6, 1e3, 1e9, 1};
constexpr size_t most_callers = 100;
constexpr size_t most_notes = 3;

Duration in_microseconds(const TimeExpression& time) {
  return Duration(std::llround(time.amount / 1e3));
}

class LiteralSearch {
 public:
  LiteralSearch(const SourceUnit& unit, const VariableUses& uses, const WantedLiteral& wanted,
                Duration most)
      : unit_(unit), uses_(uses), wanted_(wanted), most_(most) {}

  Result<FoundLiteral> find() {
    const auto calls = calls_at(unit_, wanted_.line);
    for (int distance = 0; distance <= most_call_distance; ++distance) {
      for (const bool is_known : {true, false}) {
        const auto found = matches(calls, distance, is_known);
        if (found.size() > 1) return several(found);
        if (found.size() == 1) return found[0];
      }
    }
    return nothing(calls.size());
  }

 private:
  std::vector<FoundLiteral> matches(const std::vector<CallAtLine>& calls, int distance,
                                    bool is_known) {
    std::vector<FoundLiteral> found;
    for (const CallAtLine& one : calls) {
      if (one.distance != distance) continue;
      for (const TimeArgument& argument : time_arguments(one.call, wanted_.api))
        if (argument.is_known == is_known) add_matches(argument, found);
    }
    return found;
  }

  void add_matches(const TimeArgument& argument, std::vector<FoundLiteral>& found) {
    size_t callers = 1;
    for (size_t caller = 0; caller < std::min(callers, most_callers); ++caller) {
      const auto time = evaluate_time(unit_, uses_, argument.expression, caller);
      callers = std::max(callers, time.callers);
      add_match(argument, time, found);
    }
  }

  void add_match(const TimeArgument& argument, const TimeExpression& plain,
                 std::vector<FoundLiteral>& found) {
    const bool is_guess = plain.kind == Kind::number && argument.unit == 0;
    for (const double unit : guessed_units) {
      TimeExpression time = in_unit(plain, is_guess ? unit : argument.unit);
      if (is_wanted(time) && !is_same(time, found))
        found.push_back({std::move(time), argument.callee, is_guess, unit, argument.is_default});
      if (!is_guess) break;
    }
    if (argument.is_known) note(argument, in_unit(plain, argument.unit));
  }

  bool is_wanted(const TimeExpression& time) const {
    if (time.kind != Kind::duration || time.numbers.empty()) return false;
    // Times that the agent saw are cut to microseconds, not rounded.
    const Duration rounded = in_microseconds(time);
    const Duration cut(static_cast<int64_t>(time.amount / 1e3));
    return (wanted_.value <= rounded && rounded < most_) || cut == wanted_.value;
  }

  // Two calls that take their time from one constant.
  static bool is_same(const TimeExpression& time, const std::vector<FoundLiteral>& found) {
    return std::any_of(found.begin(), found.end(), [&](const FoundLiteral& other) {
      const Spot& a = time.numbers[0].at;
      const Spot& b = other.time.numbers[0].at;
      return a.file == b.file && a.offset == b.offset;
    });
  }

  void note(const TimeArgument& argument, const TimeExpression& time) {
    const std::string callee = printable(argument.callee);
    notes_.insert(
        time.is_known()
            ? fmt::format("{}() is passed {}", callee, format_duration(in_microseconds(time)))
            : fmt::format("the time of {}() comes from {}", callee,
                          time.reason.empty() ? "what is computed at run time" : time.reason));
  }

  std::string place() const { return fmt::format("{}:{}", printable(wanted_.file), wanted_.line); }

  Error several(const std::vector<FoundLiteral>& found) const {
    std::vector<std::string> places;
    for (const FoundLiteral& one : found)
      places.push_back(fmt::format("{}() in line {}", one.callee, one.time.numbers[0].at.line));
    return usage_error(fmt::format("several calls here are passed {}: {}",
                                   format_duration(wanted_.value), printable(join(places, ", "))),
                       place(), "change the one that you mean by hand");
  }

  Error nothing(size_t calls) const {
    const std::string what = fmt::format("no literal here makes {} of {}", printable(wanted_.api),
                                         format_duration(wanted_.value));
    if (!notes_.empty())
      return usage_error(
          fmt::format(
              "{}: {}", what,
              join({notes_.begin(), std::next(notes_.begin(), static_cast<long>(std::min(
                                                                  notes_.size(), most_notes)))},
                   "; ")),
          place());
    if (calls > 0) return usage_error(what, place());
    if (const auto errors = unit_.errors(); !errors.empty())
      return usage_error(
          fmt::format("{}, as far as it can be read (`{}`): --compile-commands FOLDER may help",
                      what, printable(errors.front())),
          place());
    return usage_error(what, place(), "the source may have changed since the program was built");
  }

  const SourceUnit& unit_;
  const VariableUses& uses_;
  const WantedLiteral& wanted_;
  Duration most_;
  std::set<std::string> notes_;
};

}  // namespace

Result<FoundLiteral> find_literal(const SourceUnit& unit, const VariableUses& uses,
                                  const WantedLiteral& wanted, Duration most) {
  return LiteralSearch(unit, uses, wanted, most).find();
}

namespace {

bool holds(CXCursor cursor, const Spot& spot) {
  const SourceExtent extent = extent_of(cursor);
  return extent.begin.file == spot.file && extent.begin.offset <= spot.offset &&
         spot.offset < extent.end.offset;
}

std::string unit_name(double nanoseconds) {
  if (nanoseconds >= 1e9) return "seconds";
  if (nanoseconds >= 1e6) return "milliseconds";
  return nanoseconds >= 1e3 ? "microseconds" : "nanoseconds";
}

std::string used_elsewhere(const std::string& name, size_t places) {
  return fmt::format("{} is used at {} other place{}: changing it changes {} too", printable(name),
                     places, places == 1 ? "" : "s", places == 1 ? "that" : "them");
}

std::string left_out(const std::string& function) {
  return fmt::format("it is a default argument of {}(): all calls that leave it out change too",
                     printable(function));
}

void caution_of_variables(const FoundLiteral& found, const VariableUses& uses,
                          std::vector<std::string>& cautions) {
  for (const CXCursor variable : found.time.through) {
    if (clang().getCursorKind(variable) == CXCursor_ParmDecl) {
      if (holds(variable, found.time.numbers[0].at))
        cautions.push_back(left_out(spelling(clang().getCursorSemanticParent(variable))));
      continue;
    }
    const auto use = uses.of.find(identity(variable));
    const size_t places = use == uses.of.end() ? 0 : use->second.places.size();
    if (places > 1) cautions.push_back(used_elsewhere(spelling(variable), places - 1));
  }
}

void caution_of_macro(const SourceUnit& unit, const Spot& literal,
                      std::vector<std::string>& cautions) {
  const auto all = children(unit.root());
  const auto macro = std::find_if(all.begin(), all.end(), [&](CXCursor cursor) {
    return clang().getCursorKind(cursor) == CXCursor_MacroDefinition && holds(cursor, literal);
  });
  if (macro == all.end()) return;
  const std::string name = spelling(*macro);
  const auto places = std::count_if(all.begin(), all.end(), [&](CXCursor cursor) {
    return clang().getCursorKind(cursor) == CXCursor_MacroExpansion && spelling(cursor) == name;
  });
  if (places > 1) cautions.push_back(used_elsewhere(name, static_cast<size_t>(places) - 1));
}

}  // namespace

std::string caution_of(const SourceUnit& unit, const VariableUses& uses,
                       const FoundLiteral& found) {
  std::vector<std::string> cautions;
  const TimeNumber& number = found.time.numbers[0];
  caution_of_variables(found, uses, cautions);
  if (number.is_in_macro) caution_of_macro(unit, number.at, cautions);
  if (found.is_guess)
    cautions.push_back(fmt::format("{}() is taken to count in {}", printable(found.callee),
                                   unit_name(found.unit)));
  if (found.is_default) cautions.push_back(left_out(found.callee));
  if (number.at.file != unit.file())
    cautions.push_back(
        fmt::format("{} may be included by other files", printable(base_name(number.at.file))));
  return join(cautions, "; ");
}

}  // namespace unflake
