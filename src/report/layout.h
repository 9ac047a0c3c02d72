#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/files.h"
#include "util/time.h"

namespace unflake {

enum class Tone { plain, good, bad, doubtful, faint };

class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}
  std::string paint(Tone tone, std::string_view text) const;

 private:
  bool colour_;
};

// A status word in its column, a duration in its own when there is one, and the text; ends the
// line.
std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::optional<Duration> duration, std::string_view text);

// The same with other words instead of the duration.
std::string status_line(const Style& style, Tone tone, std::string_view status,
                        std::string_view duration, std::string_view text);

// A line that explains the status line above it.
std::string detail_line(std::string_view text);

// Names and messages come from tests: made safe for one line of a terminal, and bounded.
std::string one_line(std::string_view text);

// "1 run", "2 runs".
std::string counted(long long number, std::string_view singular);

// Where a consumer of events puts its bytes.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view bytes) = 0;
};

// Writes to a descriptor that somebody else owns. When the reader goes away or the disk is full,
// what follows is dropped: a session is worth more than its display. SIGPIPE must be ignored.
class FdSink : public Sink {
 public:
  // `give_up` becomes readable when somebody asks to stop. A reader that does not make room within
  // `grace` from then on, such as a stopped pager, gets no more: it must not hold up the end.
  explicit FdSink(int fd, int give_up = -1, Duration grace = std::chrono::seconds(1));
  void write(std::string_view bytes) override;
  int error() const { return error_; }  // errno of the write that failed; 0: none did

 private:
  bool wait_for_room() const;
  size_t room() const;

  UniqueFd terminal_;  // `fd` opened again, when it is one
  int fd_;
  int give_up_;
  Duration grace_;
  int error_ = 0;
  bool gave_up_ = false;
};

// How many columns printable text takes on a terminal. Independent of the locale: wcwidth() knows
// nothing in a program that has not called setlocale().
size_t columns(std::string_view text);

// Cut to at most `most` columns, with an ellipsis where something was cut.
std::string cut_to_columns(std::string_view text, size_t most);

// Columns as wide as what is in them, two spaces apart and indented by two. Cells come from tests:
// they are made safe for a terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Any text as HTML or SVG shows it, in elements and in quoted attributes: bounded, without control
// characters, nothing in it is markup.
std::string html_text(std::string_view text, size_t most = 500);

// The same for a sentence: what is between backticks is shown as code.
std::string html_prose(std::string_view text, size_t most = 500);

// As a list; empty when there is nothing in it.
std::string html_list(const std::vector<std::string>& lines);
std::string html_list(const char* heading, const std::vector<std::string>& lines);

// The same of what stands in a column of a table: a name or a path may go on in the next line
// after a mark, so that a narrow column does not cut words, and a number keeps its unit.
std::string html_cell(std::string_view text, size_t most = 500);

// Any text where GitHub's and GitLab's Markdown shows it as it is: one line, in a code span, so
// that it has no markup, mentions nobody, links nothing and does not break the table it may be
// in.
std::string markdown_code(std::string_view text, size_t most = 200);

// Several lines of it, in their own block.
std::string markdown_block(std::string_view text, size_t most = 4000);

}  // namespace unflake
