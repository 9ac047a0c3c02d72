#pragma once

#include <regex.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "util/result.h"

namespace unflake {

// A CMake regular expression: ^ $ . [] * + ? | () and a backslash in front of a literal character.
// No counts in braces, no named classes.
class CMakeRegex {
 public:
  static Result<CMakeRegex> compile(const std::string& pattern);

  // Where the first match is. Text that was cut at an end does not match an anchor there.
  struct Match {
    size_t start = 0;
    size_t end = 0;
  };
  std::optional<Match> find(std::string_view text, bool cut_at_start = false,
                            bool cut_at_end = false) const;

 private:
  struct Free {
    void operator()(regex_t* regex) const {
      regfree(regex);
      delete regex;
    }
  };
  explicit CMakeRegex(std::unique_ptr<regex_t, Free> regex) : regex_(std::move(regex)) {}
  std::unique_ptr<regex_t, Free> regex_;
};

// The same in POSIX's extended syntax.
std::string posix_from_cmake(std::string_view pattern);

}  // namespace unflake
