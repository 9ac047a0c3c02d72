#include "patch/variable_uses.h"

#include <algorithm>

#include "patch/time_types.h"

namespace unflake {
namespace {

constexpr int most_levels = 2000;

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

// An argument that is no copy and nothing const, which would be wrapped, can be changed by the
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
    if (level > most_levels) return;
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
    // `ts.tv_nsec -= 1000000000` carries a second over, which changes no time.
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

}  // namespace unflake
