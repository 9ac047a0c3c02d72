#pragma once

#include <regex.h>

#include <memory>
#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake {

// A CMake regular expression: ^ $ . [] * + ? | () and a backslash in front of a literal character.
// No counts in braces, no named classes.
class CMakeRegex {
 public:
  static Result<CMakeRegex> compile(const std::string& pattern);

  // Whether any part of the text matches. Text that was cut at an end does not match an anchor
  // there.
  bool matches(std::string_view text, bool cut_at_start = false, bool cut_at_end = false) const;

 private:
  struct Free {
    void operator()(regex_t* regex) const {
      regfree(regex);
      delete regex;
    }
  };
  using Compiled = std::unique_ptr<regex_t, Free>;

  static Result<Compiled> compile_posix(const std::string& posix);
  explicit CMakeRegex(Compiled from_start) : from_start_(std::move(from_start)) {}

  Compiled from_start_;  // any text, then the expression
};

// The same in POSIX's extended syntax.
std::string posix_from_cmake(std::string_view pattern);

}  // namespace unflake
