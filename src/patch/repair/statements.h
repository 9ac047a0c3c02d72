#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "patch/source/source_unit.h"
#include "patch/source/unified_diff.h"

// Where statements can be put into a source: between other statements, never inside of one.
namespace unflake {

// Of a function, a lambda or a block inside of them.
struct CodeBlock {
  size_t open = 0, close = 0;  // offsets of its braces
  int open_line = 0, close_line = 0;
  CXCursor owner;  // the function or lambda, or what the block belongs to
  std::string function;
  bool is_body = false;  // of a function or lambda
  bool is_lambda = false;
  bool is_switch = false;
  bool is_constructor = false;
  int header_line = 0;  // of a function: where it begins
};

// What can stand between braces by itself.
struct SourceStatement {
  CXCursor cursor;
  size_t begin = 0, end = 0;  // with its semicolon
  int first_line = 0, last_line = 0;
  size_t block = 0;          // number of the nearest CodeBlock
  size_t body = 0;           // number of the function's or lambda's
  int parent = -1;           // number of the statement around it in the same body
  bool is_bare = false;      // a branch without braces
  bool is_else = false;      // the bare branch after an `else`
  bool is_labelled = false;  // after `case x:` or `label:`
  size_t header_end = 0;     // of a bare branch: where its brace opens
  int body_line = 0;         // of a branching statement: where what it branches to begins
};

// All that covers a line of a file, from the outside to the inside.
struct CodeAtLine {
  std::string file;
  int line = 0;
  std::vector<CodeBlock> blocks;
  std::vector<SourceStatement> statements;
};

CodeAtLine code_at(const SourceUnit& unit, const std::string& file, int line);

// A place between statements.
struct InsertionPoint {
  enum class Kind { before, after, block_start, block_end };
  Kind kind = Kind::before;
  std::string file;
  int line = 0;
  SourceStatement statement;  // of `before` and `after`
  CodeBlock block;            // that it is in
  CodeBlock body;             // of the function that it is in
  bool at_end_of_block =
      false;         // what is put in declares something that acts when the block is left
  std::string note;  // what differs from the line that was asked for, for people
};

// Where to wait before the statement at a line, and before a lock that it is under. `function` is
// the debugger's name: it tells a lambda from what is around it.
Result<InsertionPoint> point_before(const SourceUnit& unit, const std::string& file, int line,
                                    const std::string& function);

// Where the statement at a line is over; `each_time`: also within a loop of one line.
Result<InsertionPoint> point_after(const SourceUnit& unit, const std::string& file, int line,
                                   const std::string& function, bool each_time);

// The full statement at a line, with the body that it is in.
Result<InsertionPoint> statement_at(const SourceUnit& unit, const std::string& file, int line,
                                    const std::string& function);

// `new_statement` may have several lines, without indentation. Braces are added where they are
// needed.
std::vector<SourceEdit> insertion(const SourceUnit& unit, const InsertionPoint& point,
                                  const std::string& new_statement);
SourceEdit removal(const SourceUnit& unit, const InsertionPoint& point);
SourceEdit replacement(const SourceUnit& unit, const InsertionPoint& point,
                       const std::string& new_statement);

// How a file is written.
std::string line_end_of(std::string_view text);
std::string indent_step(std::string_view text);
std::string indentation_at(std::string_view text, size_t offset);

// Of the bracket at `open`, past strings, characters and comments; npos: it does not end.
size_t matching_bracket(std::string_view text, size_t open);
size_t past_blanks(std::string_view text, size_t at);              // and comments
size_t past_literal_or_comment(std::string_view text, size_t at);  // `at` when there is none

}  // namespace unflake
