#include "store/recorder.h"

#include <fmt/format.h>

#include "store/values.h"
#include "util/capture.h"
#include "util/text.h"

namespace unflake {
namespace {

// A history that cannot be written may make each try wait for a lock, so tries are rare.
constexpr std::chrono::seconds retry_interval{30};

// What may wait in memory before it goes to the spill file.
constexpr size_t most_waiting_runs = 10'000;
constexpr size_t most_waiting_bytes = 64 * 1024 * 1024;

RunRecord record_of(const RunEnded& ended) {
  const Outcome& outcome = ended.result.outcome;
  RunRecord run;
  run.test = ended.test->id;
  run.attempt = ended.attempt;
  run.started = ended.result.started;
  run.plan_id = ended.plan.id;
  run.outcome = outcome.kind;
  run.duration = outcome.duration;
  if (!outcome.failed()) return run;
  if (!outcome.failures.empty()) run.failure = outcome.failures.front();
  run.signature = outcome.signature;
  run.output = cut_middle(whole_output(ended.result.process), longest_kept_output);
  return run;
}

std::string counted_runs(int64_t runs) {
  return fmt::format("{} {}", runs, runs == 1 ? "run" : "runs");
}

SessionRecord record_of(const SessionStarted& started) {
  return {.started = started.at,
          .surroundings = started.surroundings,
          .command_line = started.command_line,
          .seed = started.seed,
          .uuid = make_session_uuid()};
}

}  // namespace

HistoryRecorder::HistoryRecorder(OpenStore open, Tell tell, std::vector<std::string> spill_folders)
    : open_(std::move(open)), tell_(std::move(tell)), spill_(std::move(spill_folders)) {}

HistoryRecorder::~HistoryRecorder() {
  if (!waiting_.empty()) spill_waiting();
}

void HistoryRecorder::on(const Event& event) {
  if (const auto* started = std::get_if<SessionStarted>(&event)) begin(*started);
  if (const auto* ended = std::get_if<RunEnded>(&event)) take(*ended);
  if (const auto* ended = std::get_if<TestEnded>(&event)) take(*ended);
  if (const auto* ended = std::get_if<SessionEnded>(&event)) end(*ended);
}

void HistoryRecorder::begin(const SessionStarted& started) {
  record_ = record_of(started);
  session_.reset();
  try_to_write(started.at);
}

void HistoryRecorder::take(const RunEnded& ended) {
  if (ended.result.process.end == ProcessResult::End::cancelled) return;  // says nothing
  waiting_.push_back(record_of(ended));
  waiting_bytes_ += waiting_.back().output.size();
  const TimePoint now = ended.result.started + ended.result.outcome.duration;
  if (now >= retry_at_) try_to_write(now);
  if (waiting_.size() >= most_waiting_runs || waiting_bytes_ >= most_waiting_bytes) spill_waiting();
}

// Noted at the session's end, when the runs that they belong to are written.
void HistoryRecorder::take(const TestEnded& ended) {
  if (!ended.gate || fails_build(ended.gate->kind)) return;
  for (const std::string& signature : ended.gate->known)
    suppressed_.emplace_back(ended.test->id, signature);
}

void HistoryRecorder::end(const SessionEnded& ended) {
  try_to_write(retry_at_);
  if (!waiting_.empty()) spill_waiting();
  if (const Result<void> noted = write_suppressed(); !noted) report_problem(noted.error());
  // Housekeeping: should it fail, the runs are safe and the end of the next session does it.
  if (session_)
    (void)(ended.not_run > 0 ? store_->stop_session(*session_) : store_->end_session(*session_));
  if (spilled_ > 0)
    tell_({Note::Level::warning,
           fmt::format("{} could not be written to the history, and {} kept in {}",
                       counted_runs(spilled_), spilled_ == 1 ? "is" : "are", spill_.path()),
           fmt::format("bring {} in with `unflake history import {}` when the history can be "
                       "written again",
                       spilled_ == 1 ? "it" : "them", shell_quote(spill_.path()))});
  if (lost_ > 0)
    tell_({Note::Level::error, fmt::format("{} could not be written anywhere", counted_runs(lost_)),
           "free some disk space and run the tests again"});
}

void HistoryRecorder::try_to_write(TimePoint now) {
  const Result<void> written = write_waiting();
  if (written) return;
  retry_at_ = now + retry_interval;
  report_problem(written.error());
}

Result<void> HistoryRecorder::write_waiting() {
  if (!store_) {
    const Result<Store*> opened = open_();
    if (!opened) return opened.error();
    store_ = *opened;
  }
  if (!session_) {
    const Result<SessionId> begun = store_->begin_session(record_);
    if (!begun) return begun.error();
    session_ = *begun;
  }
  while (!waiting_.empty()) {
    const Result<void> recorded = store_->record(*session_, waiting_.front());
    if (!recorded) return recorded;
    waiting_bytes_ -= waiting_.front().output.size();
    waiting_.pop_front();
  }
  return {};
}

Result<void> HistoryRecorder::write_suppressed() {
  for (; session_ && !suppressed_.empty(); suppressed_.pop_front()) {
    const auto& [test, signature] = suppressed_.front();
    const Result<void> noted = store_->suppress(*session_, test, signature);
    if (!noted) return noted;
  }
  return {};
}

void HistoryRecorder::spill_waiting() {
  for (const RunRecord& run : waiting_) ++(spill_.append(record_, run) ? spilled_ : lost_);
  waiting_.clear();
  waiting_bytes_ = 0;
}

void HistoryRecorder::report_problem(const Error& error) {
  if (std::exchange(told_, true)) return;
  Error cause = error;
  cause.next.clear();
  tell_({Note::Level::warning,
         "the history cannot be written, its runs wait in memory: " + to_string(cause),
         error.next});
}

}  // namespace unflake
