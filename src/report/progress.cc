#include "report/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/style.h"

namespace unflake {

void Progress::begin(const SessionStarted& session, Duration now) {
  began_ = now;
  repeat_ = session.repeat;
  allowed_ = session.duration;
  open_tests_ = session.tests.size();
}

void Progress::start(const RunStarted& run, Duration now) {
  running_.push_back({run.test->id, label_of(*run.test), run.attempt, now});
}

void Progress::end(const RunEnded& run) {
  const auto ended = std::find_if(running_.begin(), running_.end(), [&](const RunningTest& other) {
    return other.attempt == run.attempt && other.id == run.test->id;
  });
  if (ended != running_.end()) running_.erase(ended);
  if (was_cancelled(run)) return;
  ++done_;
  if (run.result.outcome.failed()) ++failures_;
}

void Progress::end(const TestEnded& test) {
  if (open_tests_ > 0) --open_tests_;
  runs_of_ended_tests_ += static_cast<size_t>(std::max(0, test.tally.runs()));
}

// Retries make more runs than wanted and skipped tests fewer; only the tests that have ended know.
size_t Progress::wanted_runs() const {
  const size_t to_come = open_tests_ * static_cast<size_t>(std::max(0, repeat_));
  return std::max(done_, runs_of_ended_tests_ + to_come);
}

std::string Progress::counts() const {
  const bool endless = repeat_ == 0 || allowed_;
  std::string text = endless ? counted(static_cast<long long>(done_), "run")
                             : fmt::format("{}/{} runs", done_, wanted_runs());
  if (allowed_) text += fmt::format(" in at most {}", format_duration(*allowed_));
  if (failures_ > 0) text += ", " + counted(static_cast<long long>(failures_), "failure");
  return text;
}

bool was_cancelled(const RunEnded& run) {
  return run.result.process.end == ProcessResult::End::cancelled;
}

std::string label_of(const Test& test) {
  std::string label = one_line(to_string(test.id));
  std::replace(label.begin(), label.end(), '\t', ' ');  // nobody can tell how wide a tab is
  return label;
}

}  // namespace unflake
