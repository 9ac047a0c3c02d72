#pragma once

#include <regex.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/outcome.h"
#include "output/output_parsers.h"
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

// What CTest makes of a test that exited.
struct Judgement {
  OutcomeKind kind = OutcomeKind::pass;  // pass, fail or skipped
  std::optional<Failure> failure;        // of a fail that the exit status does not explain
  std::string reason;                    // of a skip
};

// As CTest does: skips come first; then the patterns decide, where there are any; else the exit
// status; and WILL_FAIL inverts the result.
Judgement judge(const PassRule& rule, int exit_status, const std::vector<TextPiece>& output);

}  // namespace unflake
