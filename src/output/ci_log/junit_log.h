#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output/ci_log/ci_log.h"

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

// What the elements of one case say, in the format of the framework that wrote them: the failures
// that a run with the same output has. None: in no known format.
struct DialectFailures {
  Framework framework;
  std::vector<Failure> failures;
};
std::optional<DialectFailures> dialect_failures(const std::vector<FailureElement>& elements);

// Of anything else: as the output of a program, which it is when CTest, Bazel or unflake wrote the
// file. Adds what it says to the log.
void read_case_output(const std::string& entry, const std::vector<FailureElement>& elements,
                      std::string output, CiLog& log);

// What a framework calls the case of this class and name.
std::string case_name(const std::string& classname, const std::string& name, Framework framework);

// Reads what can be read of a file that is cut short. More elements than any suite has are an
// error.
Result<CiLog> read_junit_log(std::string_view text);

}  // namespace unflake
