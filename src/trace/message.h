#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace unflake {

// A failure's message has two voices. What the author of the test or of the code wrote is said;
// what was only seen this time (values, context, output that follows) is shown, indented by two
// blanks. Only what was said tells one failure from another.
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

}  // namespace unflake
