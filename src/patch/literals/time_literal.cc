#include "patch/literals/time_literal.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/site.h"
#include "patch/literals/literal_parts.h"
#include "patch/source/source_unit.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr std::string_view sleeping_calls[] = {"sleep_for", "sleep_until"};
constexpr std::string_view waiting_calls[] = {
    "wait_for",        "wait_until",        "try_lock_for",        "try_lock_until",
    "try_acquire_for", "try_acquire_until", "try_lock_shared_for", "try_lock_shared_until"};

template <size_t count>
bool contains(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

struct Lines {
  int first = 0, last = 0;
  bool cover(int line) const { return first <= line && line <= last; }
};

Lines lines_of(CXCursor cursor) {
  const CXSourceRange range = clang().getCursorExtent(cursor);
  return {expanded_at(clang().getRangeStart(range)).line,
          expanded_at(clang().getRangeEnd(range)).line};
}

class CallFinder {
 public:
  CallFinder(const SourceUnit& unit, int line) : file_(unit.file()), line_(line) {}

  std::vector<CallAtLine> find(CXCursor root) {
    for (const CXCursor child : children(root))
      if (expanded_at(clang().getCursorLocation(child)).file == file_ &&
          lines_of(child).cover(line_))
        visit(child, 0, 0);
    std::vector<CallAtLine> calls;
    for (const Found& found : found_)
      if (found.call.distance < most_call_distance || found.statement == innermost_)
        calls.push_back(found.call);
    return calls;
  }

 private:
  struct Found {
    CallAtLine call;
    int statement;
  };

  // `statement` is the level of the nearest enclosing statement.
  void visit(CXCursor cursor, int level, int statement) {
    if (level > deepest_syntax) return;
    if (clang().getCursorKind(cursor) == CXCursor_CallExpr)
      found_.push_back({{cursor, distance_of(cursor)}, statement});
    const bool is_block = clang().getCursorKind(cursor) == CXCursor_CompoundStmt;
    for (const CXCursor child : children(cursor)) {
      const bool covers = lines_of(child).cover(line_);
      if (!covers && (is_block || statement == 0)) continue;
      if (is_block && covers) innermost_ = std::max(innermost_, level + 1);
      visit(child, level + 1, is_block ? level + 1 : statement);
    }
  }

  int distance_of(CXCursor call) const {
    const Lines lines = lines_of(call);
    const int spelled = spelled_at(clang().getCursorLocation(call)).line;
    if (lines.first == line_ || spelled == line_) return 0;
    return lines.cover(line_) ? 1 : most_call_distance;
  }

  const std::string& file_;
  int line_;
  int innermost_ = 0;
  std::vector<Found> found_;
};

bool is_number_type(const std::string& type) {
  constexpr std::string_view types[] = {
      "int",       "unsigned int",       "long",   "unsigned long", "short", "unsigned short",
      "long long", "unsigned long long", "double", "float"};
  return contains(types, type);
}

bool may_be_time(CXCursor argument, bool numbers_too) {
  const std::string type = type_name(argument);
  return is_time_type(type) || type == "absl::Duration" || type == "absl::Time" ||
         (numbers_too && is_number_type(type));
}

// The argument, or its default where it was left out.
std::optional<CXCursor> given(CXCursor call, const std::vector<CXCursor>& arguments, size_t index) {
  if (!is_left_out(arguments[index])) return arguments[index];
  return default_argument(clang().getCursorReferenced(call), index);
}

std::vector<TimeArgument> any_arguments(CXCursor call, const std::string& name, bool is_known) {
  std::vector<TimeArgument> found;
  const auto all = arguments(call);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!may_be_time(all[i], !is_known)) continue;
    if (const auto expression = given(call, all, i))
      found.push_back({name, *expression, 0, is_known, is_left_out(all[i])});
  }
  return found;
}

}  // namespace

std::vector<CallAtLine> calls_at(const SourceUnit& unit, int line) {
  return CallFinder(unit, line).find(unit.root());
}

std::vector<TimeArgument> time_arguments(CXCursor call, const std::string& api) {
  const std::string name = spelling(call);
  // What the C library calls by this name; the API of such a call has the same name.
  if (const auto time = time_of_api(name)) {
    const auto all = arguments(call);
    if (name != api || time->argument >= all.size()) return {};
    return {{name, all[time->argument], static_cast<double>(time->unit_ns), true, false}};
  }
  if (contains(sleeping_calls, name) || contains(waiting_calls, name)) {
    if (contains(sleeping_calls, name) != is_sleep(api)) return {};
    return any_arguments(call, name, true);
  }
  const bool makes_a_time = may_be_time(call, false) || name == "count";
  if (makes_a_time || name.starts_with("operator")) return {};
  return any_arguments(call, name, false);
}

namespace {

using namespace std::chrono_literals;

constexpr Duration most_rounding = 1ms;  // poll takes whole milliseconds

std::string place_of(const WantedLiteral& wanted) {
  return fmt::format("{}:{}", printable(wanted.file), wanted.line);
}

Result<void> check(const WantedLiteral& wanted, Duration value) {
  if (wanted.line <= 0 || wanted.value <= 0us || value < 0us)
    return usage_error("only a time above zero in a line of a file can be changed",
                       place_of(wanted));
  const auto text = read_source(wanted.file);
  if (!text) return text.error();
  if (static_cast<size_t>(wanted.line) > line_starts(*text).size())
    return usage_error(fmt::format("the file has no line {}", wanted.line), printable(wanted.file),
                       "the source may have changed since the program was built");
  return {};
}

void add_caution(SourceEdit& edit, const std::string& caution) {
  if (!edit.caution.empty() && !caution.empty()) edit.caution += "; ";
  edit.caution += caution;
}

// Looks for the literal again where it was, as if the edit had been made.
Result<void> prove(SourceUnit& unit, const WantedLiteral& wanted, Duration value,
                   SourceEdit& edit) {
  if (auto tried = unit.try_edit(edit); !tried) return tried.error();
  WantedLiteral changed = wanted;
  changed.value = value;
  const auto found = find_literal(unit, variable_uses(unit), changed, value + most_rounding);
  if (!found)
    return usage_error(fmt::format("with `{}` the call would not get {}", printable(edit.new_text),
                                   format_duration(value)),
                       place_of(wanted), found.error().what);
  const auto written = Duration(static_cast<int64_t>(found->time.amount / 1e3));
  if (written > value) add_caution(edit, fmt::format("rounded up to {}", format_duration(written)));
  return {};
}

}  // namespace

Result<SourceEdit> edit_time_literal(const WantedLiteral& wanted, Duration value,
                                     const std::string& compile_commands_folder) {
  if (auto checked = check(wanted, value); !checked) return checked.error();
  const auto unit = source_unit(wanted.file, compile_commands_folder);
  if (!unit) return unit.error();
  auto edit = propose_edit(**unit, wanted, value);
  if (!edit) return edit.error();
  if (auto proved = prove(**unit, wanted, value, *edit); !proved) return proved.error();
  if (edit->file == (*unit)->file()) edit->file = wanted.file;
  return edit;
}

Result<SourceEdit> propose_edit(const SourceUnit& unit, const WantedLiteral& wanted,
                                Duration value) {
  const VariableUses uses = variable_uses(unit);
  const auto found = find_literal(unit, uses, wanted, wanted.value + Duration(1));
  if (!found) return found.error();
  const auto literal = new_literal(unit, found->time, value);
  if (!literal) return literal.error();
  SourceEdit edit;
  edit.file = literal->begin.file;
  edit.line = literal->begin.line;
  edit.offset = literal->begin.offset;
  edit.old_text = unit.piece(literal->begin, literal->end);
  edit.new_text = literal->text;
  edit.caution = caution_of(unit, uses, *found);
  return edit;
}

}  // namespace unflake
