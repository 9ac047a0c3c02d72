#include "patch/repair/syntax.h"

#include <fmt/format.h>

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

namespace {

// Commas separate them unless they are in parentheses or literals, as for the preprocessor.
std::vector<std::string> macro_arguments(const std::string& text, size_t open, size_t close) {
  std::vector<std::string> found;
  size_t from = open + 1;
  for (size_t at = from; at < close;) {
    const size_t next = past_literal_or_comment(text, at);
    if (next > at) {
      at = next;
    } else if (text[at] == '(') {
      at = matching_bracket(text, at) + 1;
    } else if (text[at++] == ',') {
      found.emplace_back(trim(std::string_view(text).substr(from, at - 1 - from)));
      from = at;
    }
  }
  found.emplace_back(trim(std::string_view(text).substr(from, close - from)));
  return found;
}

}  // namespace

std::vector<MacroUse> macro_uses(const SourceUnit& unit, const std::string& file) {
  const std::string& text = unit.text_of(file);
  std::vector<MacroUse> found;
  for (const CXCursor cursor : unit.top_level(file)) {
    if (clang().getCursorKind(cursor) != CXCursor_MacroExpansion) continue;
    const SourceExtent extent = extent_of(cursor);
    if (extent.begin.file != file || (!found.empty() && extent.begin.offset < found.back().end))
      continue;
    MacroUse use{spelling(cursor), file, extent.begin.offset, extent.end.offset, extent.begin.line,
                 extent.end.line,  {}};
    const size_t open = text.find('(', use.begin);
    const size_t close = matching_bracket(text, open);
    if (open < use.end && close < use.end) use.arguments = macro_arguments(text, open, close);
    found.push_back(std::move(use));
  }
  return found;
}

namespace {

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool declares_test(const MacroUse& use) {
  return is_one_of(use.name, {"TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P",
                              "GTEST_TEST", "TEST_CASE", "SCENARIO", "TEST_CASE_METHOD",
                              "TEST_CASE_FIXTURE", "TEMPLATE_TEST_CASE", "TEST_CASE_TEMPLATE",
                              "SCENARIO_METHOD", "BOOST_AUTO_TEST_CASE", "BOOST_FIXTURE_TEST_CASE",
                              "BOOST_DATA_TEST_CASE", "BOOST_AUTO_TEST_CASE_TEMPLATE"});
}

// The class that the test is a method of, with work of its own before the test begins.
std::string fixture_of(const MacroUse& use) {
  if (is_one_of(use.name, {"TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "TEST_CASE_METHOD",
                           "TEST_CASE_FIXTURE", "SCENARIO_METHOD"}) &&
      !use.arguments.empty())
    return use.arguments[0];
  if (use.name == "BOOST_FIXTURE_TEST_CASE" && use.arguments.size() > 1) return use.arguments[1];
  return "";
}

bool has_work(CXCursor fixture) {
  const auto members = children(fixture);
  return std::any_of(members.begin(), members.end(), [](CXCursor member) {
    const CXCursorKind kind = clang().getCursorKind(member);
    return kind == CXCursor_Constructor || kind == CXCursor_FieldDecl ||
           (kind == CXCursor_CXXMethod && is_one_of(spelling(member), {"SetUp", "setup"}));
  });
}

std::optional<CXCursor> class_named(const std::vector<CXCursor>& declarations,
                                    const std::string& name, int level) {
  for (const CXCursor child : declarations) {
    const CXCursorKind kind = clang().getCursorKind(child);
    if (kind == CXCursor_Namespace && level < 4)
      if (auto found = class_named(children(child), name, level + 1)) return found;
    const bool is_class =
        kind == CXCursor_ClassDecl || kind == CXCursor_StructDecl || kind == CXCursor_ClassTemplate;
    if (is_class && spelling(child) == name &&
        clang().equalCursors(clang().getCursorDefinition(child), child) != 0)
      return child;
  }
  return std::nullopt;
}

InsertionPoint start_of_block(const std::string& file, int line, size_t open) {
  InsertionPoint point;
  point.kind = InsertionPoint::Kind::block_start;
  point.file = file;
  point.line = line;
  point.block.open = point.body.open = open;
  return point;
}

std::optional<TestStart> start_of_macro(const SourceUnit& unit, const MacroUse& use) {
  const std::string& text = unit.text_of(use.file);
  const size_t open = past_blanks(text, use.end);
  if (open >= text.size() || text[open] != '{') return std::nullopt;
  const std::string fixture = fixture_of(use);
  if (!fixture.empty())
    if (const auto found = class_named(unit.top_level(use.file), fixture, 0);
        found && has_work(*found)) {
      const SourceExtent extent = extent_of(*found);
      const size_t brace = text.find('{', extent.begin.offset);
      if (brace < extent.end.offset)
        return TestStart{start_of_block(use.file, extent.begin.line, brace), fixture};
    }
  return TestStart{start_of_block(use.file, use.first_line, open), ""};
}

bool covers_line(const SourceUnit& unit, const MacroUse& use, int line) {
  const std::string& text = unit.text_of(use.file);
  const size_t open = past_blanks(text, use.end);
  const size_t close =
      open < text.size() && text[open] == '{' ? matching_bracket(text, open) : use.end;
  const auto starts = line_starts(text);
  const auto last =
      std::upper_bound(starts.begin(), starts.end(), std::min(close, text.size())) - starts.begin();
  return use.first_line <= line && line <= last;
}

// `Suite.Name`, `Pre/Suite.Name/3`, "a case of Catch2", `boost_suite/name`.
bool is_named(const MacroUse& use, const std::string& test) {
  if (use.arguments.empty()) return false;
  std::string first = use.arguments[0];
  if (first.size() > 1 && first.front() == '"')
    return test.find(first.substr(1, first.size() - 2)) != std::string::npos;
  if (use.name.starts_with("BOOST_")) return test.ends_with(first);
  if (use.arguments.size() < 2) return false;
  const std::string whole = first + "." + use.arguments[1];
  const size_t at = test.find(whole);
  if (at == std::string::npos || (at > 0 && test[at - 1] != '/')) return false;
  const size_t end = at + whole.size();
  return end == test.size() || test[end] == '/';
}

std::optional<TestStart> start_of_main(const SourceUnit& unit) {
  for (const CXCursor child : unit.top_level(unit.file())) {
    if (clang().getCursorKind(child) != CXCursor_FunctionDecl || spelling(child) != "main")
      continue;
    const auto parts = children(child);
    const SourceExtent extent = extent_of(child);
    if (parts.empty() || clang().getCursorKind(parts.back()) != CXCursor_CompoundStmt) continue;
    return TestStart{
        start_of_block(extent.begin.file, extent.begin.line, extent_of(parts.back()).begin.offset),
        ""};
  }
  return std::nullopt;
}

}  // namespace

namespace {

constexpr size_t most_files = 8;  // that are parsed to find the test

// `Name` of `Pre/Suite.Name/3`, all of "a case of Catch2".
std::string distinctive_part(const std::string& test) {
  if (test.find(' ') != std::string::npos) return test;
  std::string name = test.substr(test.find('.') == std::string::npos ? 0 : test.find('.') + 1);
  const size_t slash = name.find('/');
  if (test.find('.') != std::string::npos) return name.substr(0, slash);
  return name.substr(name.rfind('/') + 1);
}

std::optional<TestStart> named_start_in(const SourceUnit& unit, const std::string& test) {
  for (const MacroUse& use : macro_uses(unit, unit.file()))
    if (declares_test(use) && is_named(use, test))
      if (auto found = start_of_macro(unit, use)) return found;
  return std::nullopt;
}

// In the sources that are known, else in those of the project that mention it.
std::optional<TestStart> named_start(const std::string& test, RepairSources& sources) {
  for (const auto& unit : sources.units())
    if (auto found = named_start_in(*unit, test)) return found;
  size_t seen = 0;
  for (const std::string& file : sources.files_with(distinctive_part(test))) {
    const auto place = sources.place(file, 1);
    if (!place || ++seen > most_files) continue;
    if (auto found = named_start_in(*place->unit, test)) return found;
  }
  return std::nullopt;
}

}  // namespace

Result<TestStart> test_start(const PatchRequest& request, RepairSources& sources) {
  std::vector<PatchPlace> places;
  if (auto failing = sources.place(request.failure.file, request.failure.line))
    places.push_back(*failing);
  for (const HandOver& each : request.hand_overs)
    if (auto place = sources.place(each.barrier.spot)) places.push_back(*place);
  for (const PatchPlace& place : places)
    for (const MacroUse& use : macro_uses(*place.unit, place.file))
      if (declares_test(use) && covers_line(*place.unit, use, place.line))
        if (auto found = start_of_macro(*place.unit, use)) return *found;
  if (auto found = named_start(request.test, sources)) return *found;
  for (const auto& unit : sources.units())
    if (auto found = start_of_main(*unit)) return *found;
  return usage_error("the beginning of the test was not found in the sources",
                     printable(request.test), "put UNFLAKE_SCOPE(name) there by hand");
}

}  // namespace unflake
