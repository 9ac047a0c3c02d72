#pragma once

#include <optional>
#include <string>
#include <vector>

#include "truth.h"
#include "util/time.h"

namespace unflake::eval {

// What is known about a time value of a program in zoo/timed; zoo/README.md describes the fields.
struct TimedValue {
  std::string line;  // FILE:LINE
  std::string call, kind, spread, expect;
  Duration now{};
  std::optional<Duration> needs;
};

struct TimedTruth {
  std::string program, framework, test;
  double plain_failure_rate = 0;
  std::optional<Duration> together;
  std::vector<TimedValue> values;

  // It fails by itself, and no value of it can change that.
  bool is_flaky_anyway() const;
  // It keeps a processor busy, which others would notice.
  bool computes() const;
};

// Of all NAME.toml in the folder, by name; or of those that are named.
Result<std::vector<TimedTruth>> read_timed_truths(const std::string& folder,
                                                  const std::vector<std::string>& only);

}  // namespace unflake::eval
