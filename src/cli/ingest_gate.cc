#include "cli/ingest_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/consumers.h"
#include "report/terminal.h"
#include "util/text.h"

namespace unflake {
namespace {

SummaryOptions summary_options() {
  SummaryOptions options;
  options.next_step = [](const TestId& id, Verdict) {
    return "unflake history " + shell_quote(to_string(id));
  };
  return options;
}

// Says what a session ends with, and nothing that comes before.
class LastWords : public Consumer {
 public:
  explicit LastWords(bool colour) : style_(colour), summary_(summary_options(), style_) {}

  void on(const Event& event) override {
    if (const auto* session = std::get_if<SessionStarted>(&event)) summary_.begin(*session);
    if (const auto* run = std::get_if<RunEnded>(&event)) take(*run);
    if (const auto* note = std::get_if<Note>(&event)) take(*note);
    if (const auto* test = std::get_if<TestEnded>(&event))
      (void)summary_.end(*test, std::exchange(log_, {}));
    if (const auto* session = std::get_if<SessionEnded>(&event)) text_ += summary_.text(*session);
  }

  const std::string& text() const { return text_; }

 private:
  void take(const RunEnded& run) {
    log_.last_status = status_word(run.result);
    log_.last_duration = run.result.outcome.duration;
    if (run.result.outcome.failed()) log_.count(run.result.outcome);
  }

  // The summary repeats what is more than information.
  void take(const Note& note) {
    summary_.remember(note);
    if (note.level == Note::Level::info) text_ += note_lines(note, style_);
  }

  Style style_;
  Summary summary_;
  TestLog log_;  // of the test whose runs are reported
  std::string text_;
};

class JsonText : public Consumer, private Sink {
 public:
  void on(const Event& event) override {
    if (!std::holds_alternative<RunEnded>(event) && !std::holds_alternative<SessionStarted>(event))
      json_.on(event);
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void write(std::string_view line) override { lines_.emplace_back(line); }

  JsonLines json_{*this};
  std::vector<std::string> lines_;
};

// Tells the history what quarantine kept from failing the build.
class Suppressor : public Consumer {
 public:
  Suppressor(Store& store, const BuildResults& results, EventStream& listeners)
      : store_(store), results_(results), listeners_(listeners) {}

  void on(const Event& event) override {
    const auto* test = std::get_if<TestEnded>(&event);
    if (!test || !test->gate || fails_build(test->gate->kind)) return;
    for (const std::string& signature : test->gate->known) suppress(test->test->id, signature);
  }

 private:
  void suppress(const TestId& test, const std::string& signature) {
    const auto failed = results_.failed().find(test);
    if (failed == results_.failed().end() || is_broken_) return;
    for (const auto& failure : failed->second.failures) {
      if (failure.outcome.signature != signature) continue;
      for (const SessionId session : failure.sessions)
        if (const auto noted = store_.suppress(session, test, signature); !noted)
          return complain(noted.error());
    }
  }

  void complain(const Error& error) {
    is_broken_ = true;
    listeners_.emit(
        Note{Note::Level::warning,
             "the history does not know which failures were in quarantine: " + to_string(error),
             "take the same reports in again"});
  }

  Store& store_;
  const BuildResults& results_;
  EventStream& listeners_;
  bool is_broken_ = false;
};

void tell_runs(const std::shared_ptr<const Test>& test, const Outcome& outcome, Duration took,
               int times, Consumer& keeper) {
  RunEnded run;
  run.test = test;
  run.result.outcome = outcome;
  run.result.outcome.duration = took;
  const Event event = run;
  for (int i = 0; i < times; ++i) keeper.on(event);
}

}  // namespace

IngestGate::IngestGate(Quarantine quarantine, Options options)
    : gate_(std::move(quarantine), day_of(options.keeper.now), RunsMade::elsewhere),
      options_(std::move(options)) {}

IngestVerdict IngestGate::decide(Store* store) const {
  EventStream listeners;
  LastWords words(options_.colour);
  JsonText json;
  listeners.add(words);
  listeners.add(json);
  std::optional<Suppressor> suppressor;
  if (store) listeners.add(suppressor.emplace(*store, results_, listeners));
  Gatekeeper keeper(gate_, options_.keeper, store, listeners);
  keeper.on(started());
  tell_bounds(keeper);
  std::set<TestId> tests;  // of the others, those that the gate has something to say about
  for (const QuarantineEntry& entry : gate_.quarantine().entries()) tests.insert(entry.test);
  for (const auto& [test, seen] : results_.failed()) tests.insert(test);
  for (const TestId& test : tests) tell_test(test, keeper);
  keeper.on(ended());
  const bool must_fail = results_.failures_left_out() > 0 || is_empty();
  return {words.text(), json.lines(),
          must_fail ? ExitCode::test_failed : gate_exit_code(keeper.counts(), options_.flaky)};
}

void IngestGate::tell_test(const TestId& id, Consumer& keeper) const {
  const Tally tally = results_.tally_of(id);
  if (tally.runs() == 0) return;
  auto test = std::make_shared<Test>();
  test->id = id;
  const auto failed = results_.failed().find(id);
  const bool has_failed = failed != results_.failed().end();
  const Duration took = has_failed ? failed->second.latest : Duration();
  Outcome skipped;
  skipped.kind = OutcomeKind::skipped;
  tell_runs(test, skipped, took, tally.skips, keeper);
  if (has_failed) {
    for (const auto& failure : failed->second.failures)
      tell_runs(test, failure.outcome, took, failure.runs, keeper);
    const auto& failures = failed->second.failures.front().outcome.failures;
    if (!failures.empty()) test->file = failures.front().file;
  }
  tell_runs(test, Outcome(), took, tally.passes, keeper);
  keeper.on(TestEnded{test, verdict_of(tally), tally, ""});
}

// Whatever kept the tests from running or from being reported, nobody has seen them pass.
bool IngestGate::is_empty() const {
  const auto others = results_.others();
  return results_.failed().empty() && others.passed + others.skipped == 0;
}

void IngestGate::tell_bounds(Consumer& keeper) const {
  if (is_empty())
    keeper.on(Note{
        Note::Level::error,
        "there is no test case in what was taken in: a build that tested nothing does not pass",
        "see that the tests ran, and that these are their reports"});
  if (results_.failures_left_out() > 0)
    keeper.on(Note{Note::Level::error,
                   fmt::format("more than {} tests failed; {} of others are not told one by one, "
                               "and fail the build",
                               results_.bounds().failed_tests,
                               counted(results_.failures_left_out(), "failure")),
                   ""});
  if (results_.passes_left_out() > 0)
    keeper.on(Note{Note::Level::warning,
                   fmt::format("there are more than {} tests; {} of others are left out, and a "
                               "flaky one among them counts as failed when it passed before",
                               results_.bounds().tests, counted(results_.passes_left_out(), "run")),
                   "take in fewer reports at a time"});
}

SessionStarted IngestGate::started() const {
  SessionStarted session;
  session.at = options_.keeper.now;
  session.surroundings.commit = options_.commit;
  for (const auto& [test, seen] : results_.failed())
    session.retries = std::max(session.retries, results_.tally_of(test).runs() - 1);
  return session;
}

SessionEnded IngestGate::ended() const {
  SessionEnded session;
  session.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began_);
  const auto others = results_.others();
  session.passed = others.passed;
  session.skipped = others.skipped;
  session.runs.passes = static_cast<int>(others.passes);
  session.runs.skips = static_cast<int>(others.skips);
  for (const auto& [test, seen] : results_.failed()) {
    ++(results_.tally_of(test).passes > 0 ? session.flaky : session.failed);
    session.runs.failures += seen.runs;
  }
  return session;
}

}  // namespace unflake
