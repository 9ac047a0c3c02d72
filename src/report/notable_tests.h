#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/events.h"

namespace unflake {

// A test that people should look at.
struct NotableTest {
  enum class Level { error, warning, notice };
  Level level = Level::error;
  TestId test;
  std::string status;  // "failed", "flaky"
  std::string headline;
  std::string file;
  int line = 0;
  std::string why;  // what a gate, or the session, says about it
  Tally tally;
};

std::string_view to_string(NotableTest::Level level);

// Picks from a session what failed, for displays that have little room.
class NotableTests {
 public:
  void take(const RunEnded& run);
  void take(const TestEnded& test);

  // What fails a build first, then in the order in which the tests ended.
  std::vector<NotableTest> most_important_first() const;

 private:
  std::map<TestId, Failure> first_failures_;  // of tests that have not ended
  std::vector<NotableTest> tests_;
};

}  // namespace unflake
