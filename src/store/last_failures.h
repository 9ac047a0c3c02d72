#pragma once

#include <optional>
#include <set>
#include <vector>

#include "store/store.h"

namespace unflake {

// What one session ran of one target.
struct SessionTests {
  struct Ran {
    TestId test;
    bool failed = false;  // in one of its runs at least
  };

  TimePoint started;
  std::string command_line;
  bool finished = true;
  std::vector<Ran> tests = {};
};

// Reads what failed last out of sessions that come newest first.
class LastFailuresReader {
 public:
  static constexpr int64_t most_sessions = 1000;  // further back nobody looks

  explicit LastFailuresReader(std::string target) : target_(std::move(target)) {}

  // False when it knows enough.
  bool take(const SessionTests& session);
  std::optional<LastFailures> result() const { return found_; }

 private:
  std::string target_;  // empty: that of the first session
  std::set<TestId> seen_;
  std::optional<LastFailures> found_;
};

}  // namespace unflake
