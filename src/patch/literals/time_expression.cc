
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "patch/literals/literal_parts.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr int most_nested = 64;

bool names_a_type(CXCursor cursor) {
  const auto inside = children(cursor);
  return std::any_of(inside.begin(), inside.end(), [](CXCursor child) {
    return clang().getCursorKind(child) == CXCursor_TypeRef;
  });
}

void note_construction(TimeExpression& value, CXCursor cursor) {
  if (value.numbers.size() != 1 || value.numbers[0].is_in_macro || value.numbers[0].wider) return;
  const SourceExtent extent = extent_of(cursor);
  const TimeNumber& number = value.numbers[0];
  const bool holds = extent.begin.file == number.at.file &&
                     extent.begin.offset < number.at.offset &&
                     number.at.offset + number.text.length < extent.end.offset;
  if (holds)
    value.numbers[0].wider =
        WiderText{WiderText::Kind::construction, extent.begin, extent.end, number.unit};
}

bool is_conversion(CXCursor cursor, const std::string& name) {
  constexpr std::string_view casts[] = {"duration_cast", "time_point_cast", "floor", "ceil",
                                        "round"};
  if (std::find(std::begin(casts), std::end(casts), name) != std::end(casts)) return true;
  const CXCursorKind kind = clang().getCursorKind(clang().getCursorReferenced(cursor));
  return kind == CXCursor_Constructor && is_time_type(type_name(cursor));
}

// Functions that make a time of a number: absl::Milliseconds(200), and what is like it.
std::optional<double> unit_of_name(const std::string& name) {
  const std::string lower = lower_case(name);
  if (lower == "nanoseconds") return 1;
  if (lower == "microseconds") return 1e3;
  if (lower == "milliseconds") return 1e6;
  if (lower == "seconds") return 1e9;
  if (lower == "minutes") return 60e9;
  return std::nullopt;
}

std::optional<CXCursor> last_operand(CXCursor declaration) {
  const auto inside = operands(declaration);
  return inside.empty() ? std::nullopt : std::optional(inside.back());
}

size_t field_index(const std::string& name) {
  return name == "tv_sec" || name == "it_interval" ? 0 : 1;
}

// `.tv_sec = 1` in a list.
std::optional<std::pair<std::string, CXCursor>> designated(CXCursor element) {
  const auto inside = children(element);
  if (inside.size() != 2 || clang().getCursorKind(inside[0]) != CXCursor_MemberRef)
    return std::nullopt;
  return std::pair(spelling(inside[0]), inside[1]);
}

class Evaluator {
 public:
  Evaluator(const SourceUnit& unit, const VariableUses& uses, size_t caller)
      : unit_(unit), uses_(uses), caller_(caller) {}

  TimeExpression evaluate(CXCursor cursor) {
    if (level_ >= most_nested) return computed(cursor);
    ++level_;
    TimeExpression value = evaluate_kind(cursor);
    --level_;
    return value;
  }

 private:
  TimeExpression evaluate_kind(CXCursor cursor) {
    switch (clang().getCursorKind(cursor)) {
      case CXCursor_IntegerLiteral:
      case CXCursor_FloatingLiteral:
        return literal(cursor);
      case CXCursor_UnexposedExpr:
      case CXCursor_ParenExpr:
      case CXCursor_CStyleCastExpr:
      case CXCursor_CXXStaticCastExpr:
      case CXCursor_CXXFunctionalCastExpr:
      case CXCursor_CompoundLiteralExpr:
        return wrapped(cursor);
      case CXCursor_InitListExpr:
        return list(cursor);
      case CXCursor_UnaryOperator:
        return unary(cursor);
      case CXCursor_BinaryOperator:
        return binary(cursor);
      case CXCursor_CallExpr:
        return call(cursor);
      case CXCursor_DeclRefExpr:
      case CXCursor_MemberRefExpr:
        return referenced(cursor);
      default:
        return computed(cursor);
    }
  }

  std::string source(CXCursor cursor) const {
    const SourceExtent extent = extent_of(cursor);
    return printable(shorten(unit_.piece(extent.begin, extent.end), 60));
  }

  // Without a reason where the compiler has written the expression, as in a range-based loop.
  TimeExpression computed(CXCursor cursor) const {
    const std::string text = source(cursor);
    const auto is_letter = [](unsigned char c) { return std::isalpha(c) || c == '_'; };
    if (std::none_of(text.begin(), text.end(), is_letter)) return unknown_time("");
    return unknown_time(fmt::format("`{}`, which is computed at run time", text));
  }

  TimeExpression literal(CXCursor cursor) const {
    const Spot at = spelled_at(clang().getRangeStart(clang().getCursorExtent(cursor)));
    const std::string& text = unit_.text_of(at.file);
    if (at.offset >= text.size()) return computed(cursor);
    const auto number = number_at_start(std::string_view(text).substr(at.offset));
    if (!number) return computed(cursor);
    TimeNumber found;
    found.at = at;
    found.text = *number;
    found.is_in_macro = in_macro_body(cursor);
    TimeExpression value = known_time(TimeExpression::Kind::number, number->value);
    value.numbers.push_back(std::move(found));
    return value;
  }

  TimeExpression wrapped(CXCursor cursor) {
    const auto inside = operands(cursor);
    if (inside.empty()) return computed(cursor);
    return converted(evaluate(inside.back()), cursor);
  }

  // What `milliseconds(x)`, a cast or an implicit conversion makes of x.
  TimeExpression converted(TimeExpression value, CXCursor cursor) const {
    const auto unit = duration_unit(type_name(cursor));
    if (!unit || value.kind == TimeExpression::Kind::unknown) return value;
    if (value.kind == TimeExpression::Kind::number) value = in_unit(std::move(value), *unit);
    if (!is_floating_duration(type_name(cursor)))
      value.amount = std::trunc(value.amount / *unit + 1e-9) * *unit;
    if (names_a_type(cursor)) note_construction(value, cursor);
    return value;
  }

  TimeExpression list(CXCursor cursor) {
    const std::string type = type_name(cursor);
    const auto inside = operands(cursor);
    if (is_timer_structure(type)) return timer(inside);
    if (is_time_structure(type)) return fields_of(type, inside).value();
    if (inside.empty()) return known_time(TimeExpression::Kind::number, 0);
    return inside.size() == 1 ? converted(evaluate(inside[0]), cursor) : computed(cursor);
  }

  TimeExpression unary(CXCursor cursor) {
    const auto inside = operands(cursor);
    if (inside.size() != 1) return computed(cursor);
    switch (clang().getCursorUnaryOperatorKind(cursor)) {
      case CXUnaryOperator_AddrOf:
      case CXUnaryOperator_Plus:
        return evaluate(inside[0]);
      case CXUnaryOperator_Minus:
        return scaled(evaluate(inside[0]), -1);
      default:
        return computed(cursor);
    }
  }

  TimeExpression binary(CXCursor cursor) {
    const auto inside = operands(cursor);
    if (inside.size() != 2) return computed(cursor);
    switch (clang().getCursorBinaryOperatorKind(cursor)) {
      case CXBinaryOperator_Add:
        return combined('+', inside[0], inside[1], cursor);
      case CXBinaryOperator_Sub:
        return combined('-', inside[0], inside[1], cursor);
      case CXBinaryOperator_Mul:
        return combined('*', inside[0], inside[1], cursor);
      case CXBinaryOperator_Div:
        return combined('/', inside[0], inside[1], cursor);
      default:
        return computed(cursor);
    }
  }

  TimeExpression combined(char operation, CXCursor left, CXCursor right, CXCursor whole) {
    return combine(operation, evaluate(left), evaluate(right), extent_of(whole));
  }

  TimeExpression call(CXCursor cursor) {
    const std::string name = spelling(cursor);
    const auto given = arguments(cursor);
    if (name.starts_with("operator\"\"")) return unit_literal(cursor);
    if (name.starts_with("operator") && name.size() == 9 && given.size() == 2 &&
        std::string_view("+-*/").find(name.back()) != std::string_view::npos)
      return combined(name.back(), given[0], given[1], cursor);
    if (name == "now") return known_time(TimeExpression::Kind::duration, 0);
    if (name == "zero" && given.empty()) return known_time(TimeExpression::Kind::duration, 0);
    if (name == "count" && given.empty()) return count(cursor);
    if (given.size() == 1 && is_conversion(cursor, name))
      return converted(evaluate(given[0]), cursor);
    if (const auto unit = unit_of_name(name); unit && given.size() == 1)
      return in_unit(evaluate(given[0]), *unit);
    return computed(cursor);
  }

  TimeExpression unit_literal(CXCursor cursor) const {
    const auto unit = duration_unit(type_name(cursor));
    if (!unit) return computed(cursor);
    TimeExpression value = literal(cursor);
    if (value.numbers.size() != 1) return computed(cursor);
    value.numbers[0].has_unit_suffix = true;
    return in_unit(std::move(value), *unit);
  }

  TimeExpression count(CXCursor cursor) {
    const auto member = operands(cursor);
    const auto object = member.empty() ? member : operands(member[0]);
    if (object.empty()) return computed(cursor);
    const auto unit = duration_unit(type_name(object[0]));
    TimeExpression value = evaluate(object[0]);
    if (!unit || value.kind != TimeExpression::Kind::duration) return computed(cursor);
    value = scaled(std::move(value), 1 / *unit);
    value.kind = TimeExpression::Kind::number;
    return value;
  }

  TimeExpression referenced(CXCursor cursor) {
    const CXCursor declaration = clang().getCursorReferenced(cursor);
    switch (clang().getCursorKind(declaration)) {
      case CXCursor_EnumConstantDecl:
      case CXCursor_FieldDecl:
        return initialised(cursor, declaration, last_operand(declaration));
      case CXCursor_VarDecl:
        return variable(cursor, declaration);
      case CXCursor_ParmDecl:
        return parameter(cursor, declaration);
      default:
        return computed(cursor);
    }
  }

  const VariableUse& use_of(CXCursor declaration) const {
    static const VariableUse none;
    const auto found = uses_.of.find(identity(declaration));
    return found == uses_.of.end() ? none : found->second;
  }

  TimeExpression initialised(CXCursor cursor, CXCursor declaration,
                             const std::optional<CXCursor>& initialiser) {
    const VariableUse& use = use_of(declaration);
    if (!use.changes.empty())
      return unknown_time(
          fmt::format("`{}`, which is changed in line {}", source(cursor), use.changes.front()));
    if (!initialiser) return computed(cursor);
    TimeExpression value = evaluate(*initialiser);
    if (!value.is_known() && value.reason.empty()) return computed(cursor);
    value.through.push_back(declaration);
    return value;
  }

  TimeExpression variable(CXCursor cursor, CXCursor declaration) {
    CXCursor definition = clang().getCursorDefinition(declaration);
    if (is_null(definition)) definition = declaration;
    const std::string type = type_name(definition);
    if (is_time_structure(type)) return structure_variable(cursor, definition, type);
    for (const CXCursor one : {definition, declaration})
      if (const CXCursor value = clang().Cursor_getVarDeclInitializer(one); !is_null(value))
        return initialised(cursor, declaration, value);
    return initialised(cursor, declaration, std::nullopt);
  }

  TimeExpression parameter(CXCursor cursor, CXCursor declaration) {
    const CXCursor function = clang().getCursorSemanticParent(declaration);
    const auto calls = uses_.calls.find(identity(function));
    const auto all = arguments(function);
    const auto same = [&](CXCursor one) { return identity(one) == identity(declaration); };
    const auto index =
        static_cast<size_t>(std::find_if(all.begin(), all.end(), same) - all.begin());
    if (calls == uses_.calls.end() || index >= all.size())
      return unknown_time(fmt::format("`{}`, a parameter of {}(), which this file does not call",
                                      spelling(cursor), spelling(function)));
    const size_t callers = calls->second.size();
    TimeExpression value =
        passed(cursor, declaration, calls->second[std::min(caller_, callers - 1)], index);
    value.callers = std::max(value.callers, callers);
    return value;
  }

  TimeExpression passed(CXCursor cursor, CXCursor parameter, CXCursor call, size_t index) {
    const auto given = arguments(call);
    if (index >= given.size()) return computed(cursor);
    const auto function = clang().getCursorReferenced(call);
    return initialised(cursor, parameter,
                       is_left_out(given[index]) ? default_argument(function, index)
                                                 : std::optional(given[index]));
  }

  TimeStructure fields_of(const std::string& type, const std::vector<CXCursor>& values) {
    TimeStructure fields(type);
    for (size_t i = 0; i < values.size() && i < 2; ++i) {
      const auto named = designated(values[i]);
      if (named) {
        fields.initialise(field_index(named->first), evaluate(named->second));
      } else {
        fields.initialise(i, evaluate(values[i]));
      }
    }
    return fields;
  }

  // It runs out after its second part; the first is the interval from then on.
  TimeExpression timer(const std::vector<CXCursor>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto named = designated(values[i]);
      if ((named ? field_index(named->first) : i) == 1)
        return evaluate(named ? named->second : values[i]);
    }
    return known_time(TimeExpression::Kind::duration, 0);
  }

  TimeExpression structure_variable(CXCursor cursor, CXCursor declaration,
                                    const std::string& type) {
    const VariableUse& use = use_of(declaration);
    if (!use.changes.empty()) return initialised(cursor, declaration, std::nullopt);
    const CXCursor initialiser = clang().Cursor_getVarDeclInitializer(declaration);
    const bool has_list =
        !is_null(initialiser) && clang().getCursorKind(initialiser) == CXCursor_InitListExpr;
    if (use.field_writes.empty() && !use.takes_clock)
      return has_list ? initialised(cursor, declaration, initialiser) : computed(cursor);
    const bool is_plain = has_list && !is_timer_structure(type);
    TimeStructure fields = is_plain ? fields_of(type, operands(initialiser)) : TimeStructure(type);
    for (const FieldWrite& write : use.field_writes) {
      if (!write.in_it_value) continue;
      const size_t index = field_index(write.field);
      write.adds ? fields.add(index, evaluate(write.value))
                 : fields.assign(index, evaluate(write.value));
    }
    return fields.value();
  }

  const SourceUnit& unit_;
  const VariableUses& uses_;
  size_t caller_;
  int level_ = 0;
};

}  // namespace

TimeExpression evaluate_time(const SourceUnit& unit, const VariableUses& uses, CXCursor expression,
                             size_t caller) {
  return Evaluator(unit, uses, caller).evaluate(expression);
}

std::optional<CXCursor> default_argument(CXCursor function, size_t index) {
  const auto parameters = arguments(function);
  if (index >= parameters.size()) return std::nullopt;
  const auto inside = operands(parameters[index]);
  return inside.empty() ? std::nullopt : std::optional(inside.back());
}

bool is_left_out(CXCursor argument) {
  return spelled_at(clang().getCursorLocation(argument)).file.empty();
}

}  // namespace unflake
