#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace unflake {

// A failure's message has two voices. What the author of the test or of the code wrote is said;
// what was only seen this time (values, context, output that follows) is shown, indented by two
// spaces. Only the words tell one failure from another.
class Message {
 public:
  void say(std::string_view line);
  void show(std::string_view line);
  void add_line(std::string_view line, bool said) { said ? say(line) : show(line); }
  std::string text() && { return std::move(text_); }

 private:
  void add(std::string_view indent, std::string_view line);
  std::string text_;
  size_t lines_ = 0;
};

// The lines that were said.
std::string said_in(std::string_view message);

// The text with everything that differs from one run or machine to the next made equal: numbers
// with their units, addresses, dates, identifiers of processes and threads, UUIDs, temporary paths,
// the folders above a file. Words stay, and so do the digits inside them (int32_t, sha256, v2).
std::string normalise(std::string_view text);

}  // namespace unflake
