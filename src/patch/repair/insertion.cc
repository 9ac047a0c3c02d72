#include <fmt/format.h>

#include <algorithm>

#include "patch/repair/statements.h"
#include "util/text.h"

namespace unflake {

std::string line_end_of(std::string_view text) {
  const size_t feed = text.find('\n');
  return feed != std::string_view::npos && feed > 0 && text[feed - 1] == '\r' ? "\r\n" : "\n";
}

namespace {

size_t line_begin(std::string_view text, size_t offset) {
  const size_t feed = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  return feed == std::string_view::npos ? 0 : feed + 1;
}

// Behind its line feed.
size_t line_over(std::string_view text, size_t offset) {
  const size_t feed = text.find('\n', offset);
  return feed == std::string_view::npos ? text.size() : feed + 1;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool begins_line(std::string_view text, size_t offset) {
  const size_t begin = line_begin(text, offset);
  return is_blank(text.substr(begin, offset - begin));
}

// But for a comment that ends with the line.
bool ends_line(std::string_view text, size_t offset) {
  const std::string_view rest = text.substr(offset, line_over(text, offset) - offset);
  const std::string_view said = trim(rest);
  const bool is_comment = said.starts_with("//") && !said.ends_with('\\');
  const bool is_closed = said.starts_with("/*") && said.find("*/") == said.size() - 2;
  return said.empty() || is_comment || is_closed;
}

std::string indented(const std::string& statement, const std::string& indent,
                     const std::string& line_end) {
  std::string text;
  for (const std::string& line : split(statement, '\n'))
    text += (line.empty() ? "" : indent + line) + line_end;
  return text;
}

std::string on_one_line(const std::string& statement) {
  std::vector<std::string> parts;
  for (const std::string& line : split(statement, '\n')) parts.emplace_back(trim(line));
  return join(parts, " ");
}

SourceEdit edit_at(const InsertionPoint& point, size_t offset, std::string new_text) {
  SourceEdit edit;
  edit.file = point.file;
  edit.line = point.line;
  edit.offset = offset;
  edit.new_text = std::move(new_text);
  return edit;
}

}  // namespace

std::string indentation_at(std::string_view text, size_t offset) {
  const size_t begin = line_begin(text, offset);
  const size_t end = std::min(text.find_first_not_of(" \t", begin), text.size());
  return std::string(text.substr(begin, end - begin));
}

// The first line that is further in than the one before it.
std::string indent_step(std::string_view text) {
  for (size_t at = 0; at < text.size(); at = line_over(text, at)) {
    const std::string indent = indentation_at(text, at);
    const std::string_view line = trim(text.substr(at, line_over(text, at) - at));
    const size_t next = line_over(text, at);
    if (!line.ends_with('{') || next >= text.size()) continue;
    const std::string inner = indentation_at(text, next);
    const std::string_view first = trim(text.substr(next, line_over(text, next) - next));
    const bool is_further = inner.size() > indent.size() && inner.size() - indent.size() <= 8;
    if (is_further && inner.starts_with(indent) && !first.empty() && !first.ends_with(':'))
      return inner.substr(indent.size());
  }
  return "  ";
}

namespace {

class Writer {
 public:
  Writer(const SourceUnit& unit, const InsertionPoint& point, const std::string& statement)
      : text_(unit.text_of(point.file)),
        point_(point),
        statement_(statement),
        end_(line_end_of(text_)) {}

  std::vector<SourceEdit> write() const {
    using Kind = InsertionPoint::Kind;
    if (point_.kind == Kind::block_start) return {at_block_start()};
    if (point_.kind == Kind::block_end) return {at_block_end()};
    if (point_.statement.is_bare) return with_braces();
    if (needs_scope()) return with_scope();
    if (point_.kind == Kind::before && is_all_of_line()) return {in_lines()};
    return {point_.kind == Kind::before ? before() : after()};
  }

 private:
  SourceEdit at_block_start() const {
    const size_t behind = point_.block.open + 1;
    if (!ends_line(text_, behind)) return edit_at(point_, behind, " " + on_one_line(statement_));
    const size_t next = line_over(text_, behind);
    return edit_at(point_, next, indented(statement_, inner_indent(), end_));
  }

  // As the first line of the block that says something; its brace may stand after a long header.
  std::string inner_indent() const {
    const size_t first = text_.find_first_not_of(" \t\r\n", line_over(text_, point_.block.open));
    if (first != std::string::npos && text_[first] == '}')
      return indentation_at(text_, first) + indent_step(text_);
    const size_t over = first == std::string::npos ? text_.size() : line_over(text_, first);
    const bool is_label = first != std::string::npos &&
                          trim(std::string_view(text_).substr(first, over - first)).ends_with(':');
    return first == std::string::npos || is_label
               ? indentation_at(text_, point_.block.open) + indent_step(text_)
               : indentation_at(text_, first);
  }

  SourceEdit at_block_end() const {
    const size_t close = point_.block.close;
    if (!begins_line(text_, close)) return edit_at(point_, close, on_one_line(statement_) + " ");
    return edit_at(point_, line_begin(text_, close),
                   indented(statement_, indentation_at(text_, close) + indent_step(text_), end_));
  }

  // `{ statement(); }`, the body of a function.
  bool is_all_of_line() const {
    const CodeBlock& block = point_.block;
    if (!block.is_body || block.is_lambda || block.open_line != block.close_line) return false;
    const std::string_view inside =
        std::string_view(text_).substr(block.open + 1, block.close - block.open - 1);
    return trim(inside).size() == point_.statement.end - point_.statement.begin;
  }

  // Two statements do not share one.
  SourceEdit in_lines() const {
    const size_t open = point_.block.open, close = point_.block.close;
    const std::string outer = indentation_at(text_, open), inner = outer + indent_step(text_);
    const auto& [begin, end] = std::pair(point_.statement.begin, point_.statement.end);
    SourceEdit edit = edit_at(point_, open + 1,
                              end_ + indented(statement_, inner, end_) + inner +
                                  text_.substr(begin, end - begin) + end_ + outer);
    edit.old_text = text_.substr(open + 1, close - open - 1);
    return edit;
  }

  SourceEdit before() const {
    const size_t begin = point_.statement.begin;
    if (!begins_line(text_, begin)) return edit_at(point_, begin, on_one_line(statement_) + " ");
    return edit_at(point_, line_begin(text_, begin),
                   indented(statement_, indentation_at(text_, begin), end_));
  }

  SourceEdit after() const {
    const size_t end = point_.statement.end;
    if (!ends_line(text_, end)) return edit_at(point_, end, " " + on_one_line(statement_));
    const size_t next = line_over(text_, end);
    const std::string added =
        indented(statement_, indentation_at(text_, point_.statement.begin), end_);
    const bool has_end = next > 0 && text_[next - 1] == '\n';
    return edit_at(point_, next, has_end ? added : end_ + added);
  }

  // No declaration may stand between the labels of a switch.
  bool needs_scope() const {
    return point_.at_end_of_block && (point_.block.is_switch || point_.statement.is_labelled);
  }

  std::vector<SourceEdit> with_scope() const {
    return {edit_at(point_, point_.statement.begin, "{ " + on_one_line(statement_) + " "),
            edit_at(point_, point_.statement.end, " }")};
  }

  // A branch without braces gets them.
  std::vector<SourceEdit> with_braces() const {
    const SourceStatement& branch = point_.statement;
    const bool is_before = point_.kind == InsertionPoint::Kind::before;
    const std::string added = on_one_line(statement_);
    const bool is_split = begins_line(text_, branch.begin);
    const bool can_be_split = ends_line(text_, branch.end) && !followed_by_else_on_line();
    if (!can_be_split) {
      return {edit_at(point_, branch.begin, is_before ? "{ " + added + " " : "{ "),
              edit_at(point_, branch.end, is_before ? " }" : " " + added + " }")};
    }
    const std::string outer = indentation_at(text_, branch.header_end - 1);
    const std::string inner =
        is_split ? indentation_at(text_, branch.begin) : outer + indent_step(text_);
    std::vector<SourceEdit> edits;
    edits.push_back(edit_at(point_, branch.header_end, " {"));
    std::string head = is_before ? indented(statement_, inner, end_) : "";
    if (is_split) {
      edits.push_back(edit_at(point_, line_begin(text_, branch.begin), head));
    } else {
      SourceEdit gap = edit_at(point_, branch.header_end, end_ + head + inner);
      gap.old_text = text_.substr(branch.header_end, branch.begin - branch.header_end);
      gap.new_text = " {" + gap.new_text;
      edits.back() = gap;
    }
    edits.push_back(
        edit_at(point_, line_over(text_, branch.end),
                (is_before ? "" : indented(statement_, inner, end_)) + outer + "}" + end_));
    return without_empty(edits);
  }

  static std::vector<SourceEdit> without_empty(std::vector<SourceEdit> edits) {
    std::erase_if(edits, [](const SourceEdit& edit) { return edit.new_text.empty(); });
    return edits;
  }

  bool followed_by_else_on_line() const {
    const size_t next = past_blanks(text_, point_.statement.end);
    return text_.compare(next, 4, "else") == 0 && next < line_over(text_, point_.statement.end);
  }

  const std::string& text_;
  const InsertionPoint& point_;
  const std::string& statement_;
  std::string end_;
};

}  // namespace

std::vector<SourceEdit> insertion(const SourceUnit& unit, const InsertionPoint& point,
                                  const std::string& new_statement) {
  return Writer(unit, point, new_statement).write();
}

SourceEdit removal(const SourceUnit& unit, const InsertionPoint& point) {
  const std::string& text = unit.text_of(point.file);
  size_t begin = point.statement.begin, end = point.statement.end;
  if (begins_line(text, begin) && ends_line(text, end)) {
    begin = line_begin(text, begin);
    end = line_over(text, end);
  }
  SourceEdit edit = edit_at(point, begin, "");
  edit.old_text = text.substr(begin, end - begin);
  return edit;
}

SourceEdit replacement(const SourceUnit& unit, const InsertionPoint& point,
                       const std::string& new_statement) {
  const std::string& text = unit.text_of(point.file);
  const size_t begin = point.statement.begin, end = point.statement.end;
  const std::string indent = indentation_at(text, begin);
  std::string written =
      begins_line(text, begin)
          ? indented(new_statement, indent, line_end_of(text)).substr(indent.size())
          : on_one_line(new_statement);
  while (!written.empty() && (written.back() == '\n' || written.back() == '\r')) written.pop_back();
  SourceEdit edit = edit_at(point, begin, written);
  edit.old_text = text.substr(begin, end - begin);
  return edit;
}

}  // namespace unflake
