#pragma once

#include <string>
#include <vector>

#include "model/events.h"

namespace unflake {

struct RunningTest {
  TestId id;
  std::string label;  // safe to print
  int attempt = 1;
  Duration since{};
};

// How far a session is: what the live bar and the status lines show. Times are the caller's clock.
class Progress {
 public:
  void begin(const SessionStarted& session, Duration now);
  void start(const RunStarted& run, Duration now);
  void end(const RunEnded& run);
  void end(const TestEnded& test);

  Duration elapsed(Duration now) const { return now - began_; }
  const std::vector<RunningTest>& running() const { return running_; }  // longest first
  // "34/700 runs, 2 failures"
  std::string counts() const;

 private:
  size_t wanted_runs() const;

  Duration began_{};
  std::optional<Duration> allowed_;
  int repeat_ = 1;
  size_t open_tests_ = 0;
  size_t runs_of_ended_tests_ = 0;
  size_t done_ = 0;
  size_t failures_ = 0;
  std::vector<RunningTest> running_;
};

// A run that was stopped from outside says nothing about its test.
bool was_cancelled(const RunEnded& run);

// How a test is named in lines that people read.
std::string label_of(const Test& test);

}  // namespace unflake
