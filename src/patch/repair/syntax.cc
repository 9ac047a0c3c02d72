#include "patch/repair/syntax.h"

#include <algorithm>

#include "util/text.h"

namespace unflake {
namespace {

void walk_below(CXCursor cursor, const std::function<void(CXCursor)>& visit, int level) {
  if (level > deepest_syntax) return;
  visit(cursor);
  for (const CXCursor child : children(cursor)) walk_below(child, visit, level + 1);
}

std::optional<CXCursor> search_below(CXCursor cursor, const std::function<bool(CXCursor)>& wanted,
                                     int level) {
  if (level > deepest_syntax) return std::nullopt;
  if (wanted(cursor)) return cursor;
  for (const CXCursor child : children(cursor))
    if (auto found = search_below(child, wanted, level + 1)) return found;
  return std::nullopt;
}

}  // namespace

void walk(CXCursor cursor, const std::function<void(CXCursor)>& visit) {
  walk_below(cursor, visit, 0);
}

std::optional<CXCursor> first_below(CXCursor cursor, const std::function<bool(CXCursor)>& wanted) {
  return search_below(cursor, wanted, 0);
}

CXCursor unwrapped(CXCursor expression) {
  for (int level = 0; level < 20; ++level) {
    const CXCursorKind kind = clang().getCursorKind(expression);
    const auto parts = operands(expression);
    const bool is_wrapper = kind == CXCursor_UnexposedExpr || kind == CXCursor_ParenExpr ||
                            kind == CXCursor_CStyleCastExpr;
    if (!is_wrapper || parts.size() != 1) break;
    expression = parts[0];
  }
  return expression;
}

CXCursor variable_named_by(CXCursor expression) {
  const CXCursor name = unwrapped(expression);
  const CXCursorKind kind = clang().getCursorKind(name);
  const bool is_member = kind == CXCursor_MemberRefExpr && operands(name).empty();
  if (kind == CXCursor_DeclRefExpr || is_member) return clang().getCursorReferenced(name);
  if (kind == CXCursor_MemberRefExpr &&
      clang().getCursorKind(unwrapped(operands(name)[0])) == CXCursor_CXXThisExpr)
    return clang().getCursorReferenced(name);
  return clang().getNullCursor();
}

CXCursor object_of(CXCursor call) {
  const auto parts = children(call);
  if (parts.empty()) return clang().getNullCursor();
  const CXCursor callee = unwrapped(parts[0]);
  const auto inside = operands(callee);
  const bool has_object =
      clang().getCursorKind(callee) == CXCursor_MemberRefExpr && !inside.empty();
  return has_object ? inside[0] : clang().getNullCursor();
}

std::string source_text(const SourceUnit& unit, CXCursor cursor) {
  const SourceExtent extent = extent_of(cursor);
  return unit.piece(extent.begin, extent.end);
}

std::string dedented(const std::string& text, const std::string& indent) {
  std::vector<std::string> lines;
  for (std::string line : split(text, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.starts_with(indent)) line.erase(0, indent.size());
    lines.push_back(std::move(line));
  }
  return join(lines, "\n");
}

bool is_visible_at(const SourceUnit& unit, CXCursor variable, const InsertionPoint& point) {
  if (is_null(variable)) return false;
  const CodeAtLine code = code_at(unit, point.file, point.line);
  const Spot declared = place_in_file(clang().getCursorLocation(variable));
  const bool is_field = clang().getCursorKind(variable) == CXCursor_FieldDecl;
  const std::string owner = identity(clang().getCursorSemanticParent(variable));
  for (const CodeBlock& block : code.blocks) {
    if (is_field && block.is_body && !block.is_lambda &&
        identity(clang().getCursorSemanticParent(block.owner)) == owner)
      return true;
    if (!is_field && declared.file == point.file && block.open < declared.offset &&
        declared.offset < block.close)
      return true;
  }
  const CXCursorKind parent = clang().getCursorKind(clang().getCursorSemanticParent(variable));
  return parent == CXCursor_Namespace || parent == CXCursor_TranslationUnit;
}

std::optional<InsertionPoint> statement_of(const SourceUnit& unit, CXCursor expression) {
  const SourceExtent extent = extent_of(expression);
  const CodeAtLine code = code_at(unit, extent.begin.file, extent.begin.line);
  std::optional<InsertionPoint> found;
  for (const SourceStatement& each : code.statements) {
    if (each.begin > extent.begin.offset || each.end < extent.end.offset) continue;
    InsertionPoint point;
    point.file = code.file;
    point.line = each.first_line;
    point.statement = each;
    point.block = code.blocks[each.block];
    point.body = code.blocks[each.body];
    found = point;
  }
  return found;
}

std::vector<CXCursor> calls_in(const SourceUnit& unit, const std::string& file) {
  std::vector<CXCursor> found;
  for (const CXCursor declaration : unit.top_level(file))
    walk(declaration, [&](CXCursor cursor) {
      if (clang().getCursorKind(cursor) == CXCursor_CallExpr) found.push_back(cursor);
    });
  return found;
}

}  // namespace unflake
