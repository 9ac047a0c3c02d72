#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/time.h"

namespace unflake {

enum class Framework { command, gtest, catch2, doctest, boost_test, ctest };

std::string_view to_string(Framework framework);
std::optional<Framework> framework_from(std::string_view name);

// `target:name`, the same on every machine: no part of it is an absolute path.
struct TestId {
  std::string target;
  std::string name;
  auto operator<=>(const TestId&) const = default;
};

std::string to_string(const TestId& id);

struct EnvChange {
  std::string name;
  std::optional<std::string> value;  // none: the variable is removed
};

struct Command {
  std::vector<std::string> argv;
  std::vector<EnvChange> env;  // on top of unflake's own environment, in order
  std::string cwd;             // empty: unflake's own
};

// What CTest lets a test declare about how to read its end. Patterns are CMake regular
// expressions.
struct PassRule {
  bool will_fail = false;
  std::optional<int> skip_return_code;
  std::vector<std::string> pass_patterns;
  std::vector<std::string> fail_patterns;
  std::vector<std::string> skip_patterns;
};

struct Fixtures {
  std::vector<std::string> required;
  std::vector<std::string> setup;    // this test sets these up
  std::vector<std::string> cleanup;  // this test cleans these up
};

// One named case that can be run alone.
struct Test {
  TestId id;
  Framework framework = Framework::command;
  bool is_entry = false;  // a CTest entry, not opened, which may run any number of cases
  Command command;
  PassRule rule;
  bool may_exit = false;            // with status 0, before its framework reports the end
  std::optional<Duration> timeout;  // as the suite declares it
  bool disabled = false;            // by the suite itself: listed, and run only on request
  std::string disabled_reason;
  // Why it cannot be started, such as not being built, and what to do: a run fails.
  std::string obstacle;
  std::vector<std::string> required_files;  // without one of these a run fails too
  std::string file;                         // where the test is defined, when the suite says so
  int line = 0;
  std::string suite;                // that the framework has it in; empty: in none
  std::vector<std::string> labels;  // of CTest and Boost.Test, and the tags of Catch2

  // Scheduling.
  bool serial = false;
  std::vector<std::string> locks;
  int processors = 1;
  Fixtures fixtures;
  std::vector<std::string> depends;  // names of tests of the same target that run before
};

}  // namespace unflake
