#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trace/ci_log.h"

namespace unflake {

// A <failure> or <error> of a test case.
struct FailureElement {
  bool is_error = false;
  std::string message;
  std::string text;
};

// What the framework that wrote it would have printed.
struct ConsoleText {
  Framework framework;
  std::string text;
};
std::optional<ConsoleText> console_text(const FailureElement& failure);

// Reads what can be read of a file that is cut short. More elements than any suite has are an
// error.
Result<CiLog> read_junit_log(std::string_view text);

}  // namespace unflake
