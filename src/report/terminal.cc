#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/layout.h"
#include "report/trace_text.h"

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

namespace {

using namespace std::chrono_literals;

constexpr std::string_view erase_line = "\r\x1b[K";
constexpr Duration between_updates = 100ms;
constexpr size_t shortest_label = 12;

std::string elapsed_text(const RunningTest& test, Duration now) {
  return fmt::format(" {}", format_duration(now - test.since));
}

std::string more_text(size_t count) {
  return count == 0 ? "" : fmt::format(", +{}", count);
}

// The running tests that fit, longest first; the first one is shortened rather than left out.
std::string running_text(const std::vector<RunningTest>& running, Duration now, size_t width) {
  std::string text;
  for (size_t i = 0; i < running.size(); ++i) {
    const std::string separator = i == 0 ? " | " : ", ";
    const std::string elapsed = elapsed_text(running[i], now);
    const size_t taken = columns(text) + separator.size() + elapsed.size() +
                         more_text(running.size() - i - 1).size();
    const size_t room = width > taken ? width - taken : 0;
    const bool whole = columns(running[i].label) <= room;
    if (!whole && (i > 0 || room < shortest_label))
      return i == 0 ? "" : text + more_text(running.size() - i);
    text += separator + cut_to_columns(running[i].label, room) + elapsed;
  }
  return text;
}

}  // namespace

std::string bar_text(const Progress& progress, Duration now, size_t width) {
  const std::string head =
      fmt::format("[{}] {}", format_duration(progress.elapsed(now)), progress.counts());
  const size_t room = width - std::min(width, columns(head));
  return cut_to_columns(head + running_text(progress.running(), now, room), width);
}

LiveBar::LiveBar(Sink& sink, bool enabled, std::function<int()> width)
    : sink_(sink), enabled_(enabled && width), width_(std::move(width)) {}

void LiveBar::refresh(const Progress& progress, Duration now) {
  if (!enabled_) return;
  if (drawn_at_ && now - *drawn_at_ < between_updates) return;
  drawn_at_ = now;
  // The last column stays free: writing there makes some terminals start a new line.
  const int usable = std::max(1, width_() - 1);
  shown_ = bar_text(progress, now, static_cast<size_t>(usable));
  sink_.write(fmt::format("\r{}\x1b[K", shown_));
}

void LiveBar::print(std::string_view lines) {
  if (lines.empty()) return;
  if (shown_.empty())
    sink_.write(lines);
  else
    sink_.write(fmt::format("{}{}{}", erase_line, lines, shown_));
}

void LiveBar::hide() {
  if (!shown_.empty()) sink_.write(erase_line);
  shown_.clear();
  drawn_at_.reset();
}

namespace {

constexpr size_t most_failures_in_status = 20;

std::string session_line(const SessionStarted& session) {
  std::string text = counted(static_cast<long long>(session.tests.size()), "test");
  if (!session.target.empty()) text += " of " + one_line(session.target);
  if (session.repeat > 1) text += fmt::format(", {} runs each", session.repeat);
  if (session.repeat == 0 && !session.duration) text += ", until stopped";
  if (session.until_fail) text += ", each until it fails";
  if (session.duration) text += fmt::format(", for {}", format_duration(*session.duration));
  if (session.retries > 0) text += fmt::format(", up to {} tries", session.retries + 1);
  if (session.jobs > 1) text += fmt::format(", {} at a time", session.jobs);
  if (session.seed) text += fmt::format(", shuffled with seed {}", *session.seed);
  return text;
}

// What a run shows besides its outcome that the user should not miss.
std::string side_notes(const RunEnded& run) {
  std::string lines;
  const Outcome& outcome = run.result.outcome;
  if (!outcome.failed() && !outcome.failures.empty())
    lines += detail_line("reported, without failing: " + failure_headline(outcome));
  const int leftovers = run.result.process.leftovers;
  if (leftovers > 0)
    lines += detail_line(
        fmt::format("left {} behind, now killed",
                    leftovers == 1 ? "1 process" : fmt::format("{} processes", leftovers)));
  return lines;
}

std::string stack_block(const ProcessResult& process, StackDetail detail) {
  std::string block;
  for (const std::string& line : timeout_stack_lines(process, detail)) block += detail_line(line);
  return block;
}

std::string left_out_text(const Excerpt& excerpt) {
  if (excerpt.left_out_bytes > 0) return fmt::format("{} bytes", excerpt.left_out_bytes);
  return counted(static_cast<long long>(excerpt.left_out), "line");
}

}  // namespace

TerminalReport::TerminalReport(Sink& sink, TerminalOptions options)
    : options_(std::move(options)),
      style_(options_.colour),
      bar_(sink, options_.live, options_.width),
      summary_(options_.summary, style_) {}

void TerminalReport::on(const Event& event) {
  std::visit([this](const auto& happened) { tell(happened); }, event);
  if (in_session_) bar_.refresh(progress_, options_.clock());
}

void TerminalReport::tell(const SessionStarted& session) {
  progress_.begin(session, options_.clock());
  summary_.begin(session);
  in_session_ = true;
  if (options_.verbosity == Verbosity::quiet) return;
  bar_.print(status_line(style_, Tone::plain, "Running", std::nullopt, session_line(session)));
}

void TerminalReport::tell(const RunStarted& run) {
  progress_.start(run, options_.clock());
  if (options_.verbosity != Verbosity::verbose) return;
  const std::string status =
      repeated(run.test->id) || run.attempt > 1
          ? fmt::format("{} {} START", repeated(run.test->id) ? "RUN" : "TRY", run.attempt)
          : "START";
  bar_.print(status_line(style_, Tone::faint, status, std::nullopt, label_of(*run.test)));
}

void TerminalReport::tell(const RunSlow& run) {
  if (options_.verbosity == Verbosity::quiet) return;
  bar_.print(status_line(style_, Tone::doubtful, "SLOW", "> " + format_duration(run.after),
                         label_of(*run.test) + later_attempt(run.test->id, run.attempt)));
}

std::string TerminalReport::later_attempt(const TestId& test, int attempt) const {
  if (attempt == 1) return "";
  return fmt::format(" ({} {})", repeated(test) ? "run" : "try", attempt);
}

void TerminalReport::tell(const RunEnded& run) {
  progress_.end(run);
  if (was_cancelled(run)) return;
  TestLog& log = logs_[run.test->id];
  log.last_status = status_word(run.result);
  log.last_duration = run.result.outcome.duration;
  log.last_reason = run.result.outcome.reason;
  if (run.result.outcome.failed())
    tell_failure(run, log.count(run.result.outcome));
  else if (run.result.outcome.kind == OutcomeKind::pass)
    tell_pass(run);
}

void TerminalReport::tell_pass(const RunEnded& run) {
  const bool verbose = options_.verbosity == Verbosity::verbose;
  if (options_.verbosity == Verbosity::quiet || (repeated(run.test->id) && !verbose)) return;
  std::string lines = status_line(style_, Tone::good, attempt_status(run),
                                  run.result.outcome.duration, label_of(*run.test));
  lines += side_notes(run);
  if (verbose) lines += output_block(run.result.process);
  bar_.print(lines);
}

// The output is shown once for every different failure of a repeated test; ten thousand copies of
// it would bury the second failure.
void TerminalReport::tell_failure(const RunEnded& run, const FailureGroup& group) {
  const Tone tone = run.will_retry ? Tone::doubtful : Tone::bad;
  const std::string status = attempt_status(run);
  const Duration duration = run.result.outcome.duration;
  const std::string label = label_of(*run.test);
  const std::string headline = failure_headline(run.result.outcome);
  if (repeated(run.test->id) && group.runs > 1) {
    bar_.print(status_line(style_, tone, status, duration, label + ": " + headline));
    return;
  }
  bar_.print(status_line(style_, tone, status, duration, label) + detail_line(headline) +
             side_notes(run) + stack_block(run.result.process, options_.stacks) +
             output_block(run.result.process));
}

std::string TerminalReport::attempt_status(const RunEnded& run) const {
  const std::string word = status_word(run.result);
  if (!repeated(run.test->id) && run.attempt == 1 && !run.will_retry) return word;
  // The signal would not fit into the column; the headline names it.
  return fmt::format("{} {} {}", repeated(run.test->id) ? "RUN" : "TRY", run.attempt,
                     word.starts_with("CRASH") ? "CRASH" : word);
}

std::string TerminalReport::output_block(const ProcessResult& process) const {
  const Excerpt excerpt = last_lines(process, options_.output_lines);
  std::string block;
  if (excerpt.left_out > 0)
    block += detail_line(fmt::format("| ({} before these not shown)", left_out_text(excerpt)));
  for (const std::string& line : excerpt.lines) block += detail_line("| " + line);
  return block;
}

void TerminalReport::tell(const TestEnded& test) {
  progress_.end(test);
  const auto log = logs_.extract(test.test->id);
  const std::string lines = summary_.end(test, log ? log.mapped() : TestLog());
  const bool found = test.verdict == Verdict::failed || test.verdict == Verdict::flaky;
  if (found || options_.verbosity != Verbosity::quiet) bar_.print(lines);
}

void TerminalReport::tell(const Note& note) {
  summary_.remember(note);
  if (note.level == Note::Level::info && options_.verbosity == Verbosity::quiet) return;
  bar_.print(note_lines(note, style_));
}

void TerminalReport::tell(const StatusRequested&) {
  const Duration now = options_.clock();
  std::string lines =
      status_line(style_, Tone::plain, "Status", progress_.elapsed(now), progress_.counts());
  for (const RunningTest& test : progress_.running()) {
    lines += status_line(style_, Tone::faint, "running", now - test.since,
                         test.label + later_attempt(test.id, test.attempt));
  }
  bar_.print(lines + summary_.found_lines(most_failures_in_status) + open_failures());
}

// Tests that have failed and are still to be retried.
std::string TerminalReport::open_failures() const {
  std::string lines;
  size_t shown = 0;
  for (const auto& [id, log] : logs_) {
    if (log.groups().empty() || ++shown > most_failures_in_status) continue;
    lines += status_line(style_, Tone::doubtful, "failing", std::nullopt, one_line(to_string(id)));
    lines += group_lines(log);
  }
  if (shown > most_failures_in_status)
    lines += detail_line(fmt::format("(and {} more failing)", shown - most_failures_in_status));
  return lines;
}

void TerminalReport::tell(const SessionEnded& session) {
  in_session_ = false;
  bar_.hide();
  bar_.print(summary_.text(session));
}

}  // namespace unflake
