#pragma once

#include <string>
#include <vector>

#include "search/reproduce/candidates.h"

namespace unflake::eval {

// A delay that was tried in runs of its own.
struct Tried {
  std::string delay;  // by key_of()
  int runs = 0;
  int hits = 0;
  bool won() const { return runs > 0 && hits == runs; }
  bool operator==(const Tried&) const = default;
};

// A passing run of a program, and which of the delays that it suggests make the test fail: enough
// to ask how soon any order of them would have come to a winning one.
struct Recording {
  std::string program;
  Trace trace;  // what candidates are made of: no stacks, and of sites and threads their names
  FailurePoint failure;
  DelayLimits limits;
  std::vector<Tried> tried;
};

// Delays with the same key do the same.
std::string key_of(const Intervention& delay);

std::string recording_json(const Recording& recording);
Result<Recording> parse_recording(const std::string& text, const std::string& path);

}  // namespace unflake::eval
