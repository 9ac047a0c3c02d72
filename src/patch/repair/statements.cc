#include "patch/repair/statements.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace unflake {
namespace {

bool is_kind(CXCursor cursor, std::initializer_list<CXCursorKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), clang().getCursorKind(cursor)) != kinds.end();
}

bool is_function(CXCursor cursor) {
  return is_kind(
      cursor, {CXCursor_FunctionDecl, CXCursor_CXXMethod, CXCursor_Constructor, CXCursor_Destructor,
               CXCursor_ConversionFunction, CXCursor_FunctionTemplate, CXCursor_LambdaExpr});
}

bool is_block(CXCursor cursor) {
  return clang().getCursorKind(cursor) == CXCursor_CompoundStmt;
}

bool is_label(CXCursor cursor) {
  return is_kind(cursor, {CXCursor_CaseStmt, CXCursor_DefaultStmt, CXCursor_LabelStmt});
}

bool is_loop(CXCursor cursor) {
  return is_kind(cursor, {CXCursor_ForStmt, CXCursor_WhileStmt, CXCursor_CXXForRangeStmt});
}

bool is_branching(CXCursor cursor) {
  return is_loop(cursor) || is_kind(cursor, {CXCursor_IfStmt, CXCursor_SwitchStmt});
}

bool leaves(CXCursor cursor) {
  return is_kind(cursor, {CXCursor_ReturnStmt, CXCursor_BreakStmt, CXCursor_ContinueStmt,
                          CXCursor_GotoStmt, CXCursor_CXXThrowExpr, CXCursor_IndirectGotoStmt}) ||
         spelling(cursor) == "co_return";
}

class CodeFinder {
 public:
  CodeFinder(const SourceUnit& unit, const std::string& file, int line)
      : text_(unit.text_of(file)), found_{file, line, {}, {}} {}

  CodeAtLine find(const SourceUnit& unit) {
    for (const CXCursor child : unit.top_level(found_.file)) visit(child, {}, 0);
    return std::move(found_);
  }

 private:
  struct Around {
    std::optional<size_t> block, body;
    int parent = -1;
  };

  bool covers(const SourceExtent& extent) const {
    return extent.begin.file == found_.file && extent.end.file == found_.file &&
           extent.begin.line <= found_.line && found_.line <= extent.end.line;
  }

  void visit(CXCursor cursor, const Around& around, int level) {
    if (level > deepest_syntax || !covers(extent_of(cursor))) return;
    if (is_function(cursor)) return visit_function(cursor, around, level);
    if (is_block(cursor)) return visit_block(cursor, cursor, around, level, {});
    for (const CXCursor child : children(cursor)) visit(child, around, level + 1);
  }

  // A constructor's initialisers and a lambda's captures are outside of the body.
  void visit_function(CXCursor function, const Around& around, int level) {
    for (const CXCursor child : children(function)) {
      if (is_block(child)) {
        visit_block(child, function, {}, level + 1, spelling(function));
      } else {
        visit(child, around, level + 1);
      }
    }
    note_function_header(function);
  }

  // On the line of its name, or in the initialisers of a constructor.
  void note_function_header(CXCursor function) {
    const auto parts = children(function);
    if (parts.empty() || !is_block(parts.back()) || covers(extent_of(parts.back()))) return;
    if (in_macro_body(parts.back()) || !covers(extent_of(function))) return;
    const bool is_claimed = !found_.blocks.empty();
    if (!is_claimed) add_block(parts.back(), function, spelling(function));
  }

  size_t add_block(CXCursor block, CXCursor owner, const std::string& function) {
    const SourceExtent extent = extent_of(block);
    CodeBlock added;
    added.open = extent.begin.offset;
    added.close = extent.end.offset - 1;
    added.open_line = extent.begin.line;
    added.close_line = extent.end.line;
    added.owner = owner;
    added.function = function;
    added.is_body = is_function(owner);
    added.is_lambda = clang().getCursorKind(owner) == CXCursor_LambdaExpr;
    added.is_switch = clang().getCursorKind(owner) == CXCursor_SwitchStmt;
    added.is_constructor = clang().getCursorKind(owner) == CXCursor_Constructor;
    added.header_line = extent_of(owner).begin.line;
    found_.blocks.push_back(added);
    return found_.blocks.size() - 1;
  }

  void visit_block(CXCursor block, CXCursor owner, Around around, int level,
                   const std::string& function) {
    const SourceExtent extent = extent_of(block);
    if (!covers(extent)) return;
    // The statements of a macro's body cannot be told apart in the file.
    if (in_macro_body(block) || extent.begin.offset >= text_.size() ||
        text_[extent.begin.offset] != '{') {
      for (const CXCursor child : children(block)) visit(child, around, level + 1);
      return;
    }
    around.block = add_block(block, owner, function);
    if (is_function(owner)) {
      around.body = around.block;
      around.parent = -1;
    }
    if (!around.body) return;
    for (const CXCursor child : children(block)) visit_statement(child, around, level + 1, {});
  }

  struct Branch {
    bool is_bare = false, is_else = false, is_labelled = false;
    size_t header_end = 0;
  };

  void visit_statement(CXCursor cursor, Around around, int level, const Branch& branch) {
    if (level > deepest_syntax) return;
    const SourceExtent extent = extent_of(cursor);
    SourceStatement found;
    found.end = end_of(cursor, extent);
    const int last_line = extent.end.line;
    if (extent.begin.file != found_.file || extent.begin.line > found_.line ||
        last_line < found_.line)
      return;
    if (is_label(cursor)) return visit_label(cursor, around, level, branch);
    found.cursor = cursor;
    found.begin = extent.begin.offset;
    found.first_line = extent.begin.line;
    found.last_line = last_line;
    found.block = *around.block;
    found.body = *around.body;
    found.parent = around.parent;
    found.is_bare = branch.is_bare;
    found.is_else = branch.is_else;
    found.is_labelled = branch.is_labelled;
    found.header_end = branch.header_end;
    found_.statements.push_back(found);
    around.parent = static_cast<int>(found_.statements.size()) - 1;
    visit_inside(cursor, around, level);
  }

  void visit_label(CXCursor label, const Around& around, int level, Branch branch) {
    branch.is_labelled = true;
    const auto parts = children(label);
    if (!parts.empty()) visit_statement(parts.back(), around, level + 1, branch);
  }

  // What of a statement can hold others: a block, the branches of an if, the body of a loop,
  // lambdas.
  void visit_inside(CXCursor cursor, const Around& around, int level) {
    if (is_block(cursor)) return visit_block(cursor, cursor, around, level, {});
    const bool is_from_macro = in_macro_body(cursor);
    const bool is_do = clang().getCursorKind(cursor) == CXCursor_DoStmt;
    const size_t header = is_branching(cursor) && !is_from_macro ? header_end(cursor) : 0;
    bool is_first = true;
    for (const CXCursor child : children(cursor)) {
      const size_t begin = extent_of(child).begin.offset;
      const bool is_branch = (header > 0 && begin >= header) || (is_do && is_first);
      is_first = false;
      if (!is_branch || is_from_macro) {
        visit(child, around, level + 1);
        continue;
      }
      note_body(around.parent, child);
      if (is_block(child)) {
        visit_block(child, cursor, around, level + 1, {});
      } else {
        visit_statement(child, around, level + 1, bare_branch(cursor, header, begin));
      }
    }
  }

  void note_body(int statement, CXCursor branch) {
    SourceStatement& owner = found_.statements[static_cast<size_t>(statement)];
    if (owner.body_line == 0) owner.body_line = extent_of(branch).begin.line;
  }

  // Just after the parenthesis of `if (...)`.
  size_t header_end(CXCursor cursor) const {
    const size_t open = text_.find('(', extent_of(cursor).begin.offset);
    const size_t close = matching_bracket(text_, open);
    return close == std::string::npos ? 0 : close + 1;
  }

  Branch bare_branch(CXCursor owner, size_t header, size_t begin) const {
    Branch branch{true, false, false, header};
    const std::string_view before = trim(std::string_view(text_).substr(0, begin));
    const bool follows_else =
        clang().getCursorKind(owner) == CXCursor_IfStmt && past_blanks(text_, header) != begin;
    if (follows_else) {
      const size_t word = text_.rfind("else", begin);
      branch.is_else = word != std::string::npos && word >= header;
      branch.header_end = branch.is_else ? word + 4 : before.size();
    }
    if (clang().getCursorKind(owner) == CXCursor_DoStmt)
      branch.header_end = extent_of(owner).begin.offset + 2;
    return branch;
  }

  size_t end_of(CXCursor cursor, const SourceExtent& extent) const {
    const size_t end = extent.end.offset;
    if (end > 0 && end <= text_.size() && text_[end - 1] == ';') return end;
    if (is_block(cursor)) return end;
    const size_t next = past_blanks(text_, end);
    return next < text_.size() && text_[next] == ';' ? next + 1 : end;
  }

  const std::string& text_;
  CodeAtLine found_;
};

}  // namespace

size_t past_blanks(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      const size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  return at;
}

namespace {

size_t past_literal(std::string_view text, size_t at) {
  const char quote = text[at];
  if (quote == '"' && at > 0 && text[at - 1] == 'R') {
    const size_t open = text.find('(', at);
    if (open == std::string_view::npos) return text.size();
    const std::string end = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
    const size_t found = text.find(end, open);
    return found == std::string_view::npos ? text.size() : found + end.size();
  }
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

bool is_separator_of_digits(std::string_view text, size_t at) {
  return text[at] == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0;
}

}  // namespace

size_t past_literal_or_comment(std::string_view text, size_t at) {
  const std::string_view two = text.substr(at, 2);
  if (two == "//" || two == "/*") return past_blanks(text, at);
  const bool is_quote = text[at] == '"' || text[at] == '\'';
  return is_quote && !is_separator_of_digits(text, at) ? past_literal(text, at) : at;
}

size_t matching_bracket(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size();) {
    const size_t next = past_literal_or_comment(text, at);
    if (next > at) {
      at = next;
      continue;
    }
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return at;
    ++at;
  }
  return std::string_view::npos;
}

CodeAtLine code_at(const SourceUnit& unit, const std::string& file, int line) {
  return CodeFinder(unit, file, line).find(unit);
}

namespace {

std::string last_part(std::string name) {
  const size_t colon = name.rfind("::");
  if (colon != std::string::npos) name.erase(0, colon + 2);
  const size_t angle = name.find('<');
  if (angle != std::string::npos && angle > 0 && !name.starts_with("operator")) name.resize(angle);
  return name;
}

bool names_lambda(const std::string& function) {
  return function.empty() || last_part(function) == "operator()" ||
         function.find("lambda") != std::string::npos;
}

// The chosen function's or lambda's, among those that cover the line.
std::optional<size_t> body_at(const CodeAtLine& code, const std::string& function) {
  std::optional<size_t> innermost, named, outside;
  for (size_t i = 0; i < code.blocks.size(); ++i) {
    const CodeBlock& block = code.blocks[i];
    if (!block.is_body) continue;
    const bool has_code = std::any_of(code.statements.begin(), code.statements.end(),
                                      [&](const SourceStatement& each) { return each.body == i; });
    if (has_code || !innermost) innermost = i;
    if (!block.is_lambda && block.function == last_part(function)) named = i;
    if (!block.is_lambda && has_code) outside = i;
  }
  // A macro may give the function another name each time.
  if (!named) named = outside;
  if (!innermost || !code.blocks[*innermost].is_lambda || names_lambda(function)) return innermost;
  // All of the lambda is on this line, and so is the function's own code.
  const CodeBlock& lambda = code.blocks[*innermost];
  return named && lambda.open_line == lambda.close_line ? named : innermost;
}

Error no_statement(const CodeAtLine& code) {
  return usage_error("no statement of a function is at this line, as the file is compiled",
                     fmt::format("{}:{}", printable(code.file), code.line),
                     "the source may have changed since the program was built");
}

// The innermost statements of the body; several stand on one line.
std::vector<size_t> innermost_at(const CodeAtLine& code, size_t body) {
  std::vector<size_t> leaves;
  for (size_t i = 0; i < code.statements.size(); ++i) {
    if (code.statements[i].body != body) continue;
    const bool has_inner = std::any_of(
        code.statements.begin(), code.statements.end(), [&](const SourceStatement& each) {
          return each.body == body && each.parent == static_cast<int>(i);
        });
    if (!has_inner) leaves.push_back(i);
  }
  return leaves;
}

bool same_lines(const SourceStatement& a, const SourceStatement& b) {
  return a.first_line == b.first_line && a.last_line == b.last_line;
}

// Up to the statement that begins the line, or to the head of `else if`.
size_t outermost(const CodeAtLine& code, size_t at, bool goes_over_loops) {
  while (code.statements[at].parent >= 0) {
    const auto parent = static_cast<size_t>(code.statements[at].parent);
    const bool is_else_if = code.statements[at].is_else &&
                            clang().getCursorKind(code.statements[at].cursor) == CXCursor_IfStmt;
    const bool is_one_line = same_lines(code.statements[at], code.statements[parent]) &&
                             (goes_over_loops || !is_loop(code.statements[parent].cursor));
    if (!is_else_if && !is_one_line) break;
    at = parent;
  }
  return at;
}

InsertionPoint point(InsertionPoint::Kind kind, const CodeAtLine& code, size_t body, size_t block) {
  InsertionPoint made;
  made.kind = kind;
  made.file = code.file;
  made.line = code.line;
  made.body = code.blocks[body];
  made.block = code.blocks[block];
  return made;
}

InsertionPoint at_statement(InsertionPoint::Kind kind, const CodeAtLine& code, size_t statement) {
  const SourceStatement& found = code.statements[statement];
  InsertionPoint made = point(kind, code, found.body, found.block);
  made.statement = found;
  return made;
}

// The innermost block of the body that ends on the line.
std::optional<size_t> block_closed_at(const CodeAtLine& code, size_t body) {
  std::optional<size_t> found;
  for (size_t i = body; i < code.blocks.size(); ++i)
    if (code.blocks[i].close_line == code.line &&
        code.blocks[i].close < code.blocks[body].close + 1 &&
        code.blocks[i].open >= code.blocks[body].open &&
        code.blocks[i].open_line != code.blocks[i].close_line)
      found = i;
  return found;
}

// Between a statement's braces, where the line is of neither.
bool is_closing_line(const CodeAtLine& code, size_t statement) {
  const SourceStatement& found = code.statements[statement];
  return found.last_line == code.line && found.first_line != code.line &&
         (is_branching(found.cursor) || is_block(found.cursor));
}

}  // namespace

Result<InsertionPoint> statement_at(const SourceUnit& unit, const std::string& file, int line,
                                    const std::string& function) {
  const CodeAtLine code = code_at(unit, file, line);
  const auto body = body_at(code, function);
  if (!body) return no_statement(code);
  const auto found = innermost_at(code, *body);
  if (found.empty()) return no_statement(code);
  return at_statement(InsertionPoint::Kind::before, code, found.front());
}

namespace {

constexpr std::string_view lock_types[] = {"std::lock_guard<", "std::unique_lock<",
                                           "std::scoped_lock<", "std::shared_lock<"};

bool takes_lock(CXCursor statement) {
  if (clang().getCursorKind(statement) == CXCursor_DeclStmt)
    for (const CXCursor variable : children(statement)) {
      const std::string type = type_name(variable);
      if (std::any_of(std::begin(lock_types), std::end(lock_types),
                      [&](std::string_view lock) { return type.starts_with(lock); }))
        return true;
    }
  if (clang().getCursorKind(statement) != CXCursor_CallExpr) return false;
  const std::string name = spelling(statement);
  return name == "lock" || name == "pthread_mutex_lock" || name == "mtx_lock";
}

bool frees_lock(CXCursor statement) {
  if (clang().getCursorKind(statement) != CXCursor_CallExpr) return false;
  const std::string name = spelling(statement);
  return name == "unlock" || name == "pthread_mutex_unlock" || name == "mtx_unlock" ||
         name == "wait" || name == "wait_for" || name == "wait_until";
}

// The first lock that is still held at `offset`, among the statements of the blocks around.
class LockFinder {
 public:
  LockFinder(const std::string& file, size_t offset) : file_(file), offset_(offset) {}

  std::optional<SourceExtent> find(CXCursor body) {
    visit(body, 0);
    return found_;
  }

 private:
  void visit(CXCursor cursor, int level) {
    if (level > deepest_syntax || found_) return;
    const auto parts = children(cursor);
    if (is_block(cursor)) note_locks(parts);
    for (const CXCursor part : parts)
      if (holds(extent_of(part))) visit(part, level + 1);
  }

  bool holds(const SourceExtent& extent) const {
    return extent.begin.file == file_ && extent.begin.offset <= offset_ &&
           offset_ < extent.end.offset;
  }

  void note_locks(const std::vector<CXCursor>& statements) {
    std::optional<SourceExtent> held;
    for (const CXCursor statement : statements) {
      const SourceExtent extent = extent_of(statement);
      if (extent.begin.offset >= offset_) break;
      if (takes_lock(statement) && !held) held = extent;
      if (frees_lock(statement)) held.reset();
    }
    found_ = held;
  }

  const std::string& file_;
  size_t offset_;
  std::optional<SourceExtent> found_;
};

}  // namespace

Result<InsertionPoint> point_before(const SourceUnit& unit, const std::string& file, int line,
                                    const std::string& function) {
  const CodeAtLine code = code_at(unit, file, line);
  const auto body = body_at(code, function);
  if (!body) return no_statement(code);
  const auto found = innermost_at(code, *body);
  using Kind = InsertionPoint::Kind;
  if (found.empty() || is_closing_line(code, found.back())) {
    if (const auto closed = block_closed_at(code, *body))
      return point(Kind::block_end, code, *body, *closed);
    const CodeBlock& owner = code.blocks[*body];
    if (owner.is_constructor && line > owner.header_line && line <= owner.open_line &&
        line != owner.open_line)
      return usage_error("nothing can wait between the initialisers of a constructor",
                         fmt::format("{}:{}", printable(file), line),
                         "wait where the object is made");
    return point(Kind::block_start, code, *body, *body);
  }
  InsertionPoint made = at_statement(Kind::before, code, outermost(code, found.front(), true));
  LockFinder locks(file, made.statement.begin);
  if (const auto lock = locks.find(made.body.owner)) {
    const auto earlier = statement_at(unit, file, lock->begin.line, function);
    if (earlier && earlier->statement.begin == lock->begin.offset) {
      InsertionPoint before_lock = *earlier;
      before_lock.note =
          fmt::format("it waits before the lock of line {} is taken", lock->begin.line);
      return before_lock;
    }
  }
  return made;
}

namespace {

bool always_leaves(CXCursor branch) {
  if (leaves(branch)) return true;
  if (!is_block(branch)) return false;
  const auto parts = children(branch);
  return !parts.empty() && leaves(parts.back());
}

bool has_call(CXCursor cursor, int level) {
  if (clang().getCursorKind(cursor) == CXCursor_CallExpr) return true;
  const auto parts = children(cursor);
  return level < 200 && std::any_of(parts.begin(), parts.end(),
                                    [&](CXCursor part) { return has_call(part, level + 1); });
}

// `if (is_open) return save();`: not the condition.
bool is_what_calls(CXCursor branching, CXCursor leaving) {
  const auto parts = children(branching);
  return has_call(leaving, 0) && !parts.empty() && !has_call(parts[0], 0);
}

// `while (step()) {`: what comes first was that each time when the body begins.
InsertionPoint behind_header(const CodeAtLine& code, size_t statement) {
  using Kind = InsertionPoint::Kind;
  const SourceStatement& found = code.statements[statement];
  for (size_t i = 0; i < code.blocks.size(); ++i)
    if (clang().equalCursors(code.blocks[i].owner, found.cursor) != 0 && is_loop(found.cursor))
      return point(Kind::block_start, code, found.body, i);
  InsertionPoint made = at_statement(Kind::after, code, statement);
  if (found.body_line > 0 && found.last_line > code.line &&
      !always_leaves(children(found.cursor).back()))
    made.note =
        fmt::format("it counts when all of the statement of line {} is over", found.first_line);
  return made;
}

}  // namespace

Result<InsertionPoint> point_after(const SourceUnit& unit, const std::string& file, int line,
                                   const std::string& function, bool each_time) {
  const CodeAtLine code = code_at(unit, file, line);
  const auto body = body_at(code, function);
  if (!body) return no_statement(code);
  const auto found = innermost_at(code, *body);
  using Kind = InsertionPoint::Kind;
  const CodeBlock& owner = code.blocks[*body];
  if (found.empty()) {  // where the function begins or ends
    InsertionPoint made = point(Kind::block_start, code, *body, *body);
    made.at_end_of_block = line == owner.close_line && line != owner.open_line;
    return made;
  }
  const size_t last = outermost(code, found.back(), !each_time);
  const SourceStatement& statement = code.statements[last];
  const CXCursor innermost = code.statements[found.back()].cursor;
  if (leaves(statement.cursor) ||
      (leaves(innermost) && is_what_calls(statement.cursor, innermost))) {
    InsertionPoint made = at_statement(Kind::before, code, found.back());
    made.at_end_of_block = true;
    return made;
  }
  if (is_branching(statement.cursor) && statement.body_line >= line && statement.last_line > line)
    return behind_header(code, last);
  return at_statement(Kind::after, code, last);
}

}  // namespace unflake
