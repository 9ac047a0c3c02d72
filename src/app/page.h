#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "util/result.h"

namespace unflake {

// What unflake's exit status says to a script. Documented in docs/formats.md.
enum class ExitCode {
  success = 0,
  test_failed = 1,      // a test failed in every one of its runs
  usage = 2,            // the command line, the configuration or the target is not right
  flaky_only = 3,       // no test always failed, and a test both failed and passed
  unflake_failed = 4,   // unflake or the machine failed, not a test
  only_margin = 5,      // no test to blame: it fails when a machine stands still
  signal_offset = 128,  // + the signal that stopped it
};

inline int exit_code_of_signal(int signal) {
  return static_cast<int>(ExitCode::signal_offset) + signal;
}

inline ExitCode exit_code_of(const Error& error) {
  return error.kind == ErrorKind::usage ? ExitCode::usage : ExitCode::unflake_failed;
}

// What a command says outside of a session: collected, then written to standard output at once.
class Page {
 public:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  // The exit code: a reader that goes away early (`| head`) has what it wanted; a full disk is an
  // error.
  int write_out() const;

 private:
  std::string text_;
};

}  // namespace unflake
