#include "store/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

// Passes on to a real store until told to fail, as a full disk would.
class FailingStore : public Store {
 public:
  explicit FailingStore(Store& real) : real_(real) {}
  bool broken = false;
  int tries = 0;

  Result<SessionId> begin_session(const SessionRecord& session) override {
    ++tries;
    if (broken) return full();
    return real_.begin_session(session);
  }
  Result<std::optional<TimePoint>> find_session(const std::string&) override { return full(); }
  Result<void> record(SessionId session, const RunRecord& run) override {
    ++tries;
    if (broken) return full();
    return real_.record(session, run);
  }
  Result<void> end_session(SessionId session) override {
    if (broken) return full();
    return real_.end_session(session);
  }
  Result<void> stop_session(SessionId session) override {
    if (broken) return full();
    return real_.stop_session(session);
  }
  Result<std::optional<LastFailures>> last_failures(const SessionQuestion&) override {
    return full();
  }
  Result<void> remember_target(const TargetRecord&) override { return full(); }
  Result<std::optional<TargetRecord>> find_target(const std::string&) override { return full(); }
  Result<std::vector<TestSummary>> summarise(const std::string&, size_t) override { return full(); }
  Result<std::optional<TestSummary>> summarise_test(const TestId&) override { return full(); }
  Result<std::vector<RecentRun>> recent_runs(const TestId&, size_t) override { return full(); }
  Result<std::vector<RecentRun>> recent_trials(const TestId&, const std::string&, size_t) override {
    return full();
  }
  Result<std::vector<TestId>> find_tests(const std::string&, size_t) override { return full(); }
  Result<std::optional<std::string>> latest_output(const TestId&, const std::string&) override {
    return full();
  }
  Result<void> record_all(SessionId session, std::span<const RunRecord> runs) override {
    ++tries;
    if (broken) return full();
    return real_.record_all(session, runs);
  }
  Result<void> record_functions(SessionId session,
                                std::span<const FunctionsRecord> traces) override {
    if (broken) return full();
    return real_.record_functions(session, traces);
  }
  Result<FunctionTraces> latest_functions(const std::string&) override { return full(); }
  Result<void> suppress(SessionId session, const TestId& test,
                        const std::string& signature) override {
    if (broken) return full();
    return real_.suppress(session, test, signature);
  }
  Result<RunCounts> count_runs(const TestId&, const std::string&, const Window&) override {
    return full();
  }
  LifecycleStore& lifecycle() override { return real_.lifecycle(); }
  Result<RetentionCount> forget(const Retention&, TimePoint) override { return full(); }
  Result<void> visit(const Visitor&) override { return full(); }
  Result<std::optional<TimePoint>> forgotten_before() override { return full(); }

 private:
  static Error full() {
    return internal_error("the disk is full", "history.db", "free some space");
  }
  Store& real_;
};

class RecorderTest : public testing::Test {
 protected:
  std::unique_ptr<HistoryRecorder> make_recorder(std::vector<std::string> folders) {
    return std::make_unique<HistoryRecorder>(
        store_, [this](const Note& note) { notes_.push_back(note); }, std::move(folders));
  }

  static SessionStarted started() {
    SessionStarted event;
    event.at = at_second(0);
    event.surroundings.commit = "c0ffee";
    event.seed = 0xffffffffffffffff;
    return event;
  }

  static RunEnded ended(int64_t second, OutcomeKind kind = OutcomeKind::pass) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"suite", "t\xff"};
    RunEnded event;
    event.test = test;
    event.result.started = at_second(second);
    event.result.outcome.kind = kind;
    if (kind == OutcomeKind::fail) {
      event.result.outcome.failures = {*failing_run("t", 0).failure};
      event.result.outcome.signature = "00000000000000aa";
      event.result.process.output.head = "boom \xfe";
      event.result.process.output.total = 6;
    }
    return event;
  }

  std::string spill_path() const { return spill_file_in(folder_.file("state")); }

  TestSummary summary() {
    const auto found = real_->summarise_test({"suite", "t\xff"});
    return found && *found ? **found : TestSummary{};
  }

  void import(const std::string& path, int64_t runs) {
    const auto imported = import_history(*real_, path);
    ASSERT_TRUE(imported) << to_string(imported.error());
    EXPECT_EQ(imported->runs, runs);
    EXPECT_EQ(imported->bad_lines, 0);
  }

  TempFolder folder_;
  std::unique_ptr<Store> real_ = *open_store({folder_.file("history.db")});
  FailingStore store_{*real_};
  std::vector<Note> notes_;
  std::unique_ptr<HistoryRecorder> recorder_ =
      make_recorder({folder_.file("state"), folder_.file("temporary")});
};

TEST_F(RecorderTest, Notes_which_failures_quarantine_kept_from_failing_the_build) {
  for (const GateKind kind : {GateKind::flaky_known, GateKind::other_signature}) {
    recorder_->on(started());
    recorder_->on(ended(1, OutcomeKind::fail));
    recorder_->on(ended(2));
    TestEnded test;
    test.test = ended(1).test;
    test.gate.emplace();
    test.gate->kind = kind;
    test.gate->known = {"00000000000000aa"};
    recorder_->on(test);
    recorder_->on(SessionEnded{});
  }
  const auto failures = real_->lifecycle().flaky_failures({}, 10);
  ASSERT_TRUE(failures);
  ASSERT_THAT(*failures, SizeIs(1));
  EXPECT_EQ(failures->front().builds, 2);
  EXPECT_EQ(failures->front().suppressed_builds, 1);
}

TEST_F(RecorderTest, Leaves_a_session_unfinished_that_did_not_come_to_all_of_its_tests) {
  for (const int not_run : {0, 1}) {
    recorder_->on(started());
    recorder_->on(ended(1, OutcomeKind::fail));
    SessionEnded session;
    session.not_run = not_run;
    recorder_->on(session);
    EXPECT_EQ((*real_->last_failures({""}))->finished, not_run == 0);
  }
}

TEST_F(RecorderTest, Records_every_run_with_its_failure_and_output) {
  recorder_->on(started());
  recorder_->on(ended(1));
  recorder_->on(ended(2, OutcomeKind::fail));
  recorder_->on(SessionEnded{});
  EXPECT_EQ(summary().passes, 1);
  ASSERT_THAT(summary().signatures, SizeIs(1));
  EXPECT_EQ(summary().signatures[0].failure, *failing_run("t", 0).failure);
  EXPECT_EQ(summary().signatures[0].first_commit, "c0ffee");
  EXPECT_EQ(**real_->latest_output({"suite", "t\xff"}, "00000000000000aa"), "boom \xfe");
  EXPECT_TRUE(recorder_->all_recorded());
  EXPECT_THAT(notes_, SizeIs(0));
}

TEST_F(RecorderTest, Cuts_a_long_output_once_and_says_by_how_much) {
  RunEnded loud = ended(1, OutcomeKind::fail);
  const std::string text(300'000, 'x');
  loud.result.process.output = {.head = text, .tail = "", .total = text.size()};
  recorder_->on(started());
  recorder_->on(loud);
  recorder_->on(SessionEnded{});
  const std::string kept = **real_->latest_output({"suite", "t\xff"}, "00000000000000aa");
  EXPECT_LE(kept.size(), longest_kept_output);
  EXPECT_THAT(kept, HasSubstr("[... 234528 bytes not shown ...]"));
}

TEST_F(RecorderTest, Leaves_cancelled_runs_out) {
  recorder_->on(started());
  RunEnded cancelled = ended(1, OutcomeKind::crash);
  cancelled.result.process.end = ProcessResult::End::cancelled;
  recorder_->on(cancelled);
  recorder_->on(SessionEnded{});
  EXPECT_EQ(summary().failures, 0);
}

TEST_F(RecorderTest, Writes_later_what_could_not_be_written_at_once) {
  recorder_->on(started());
  store_.broken = true;
  recorder_->on(ended(1));
  EXPECT_FALSE(recorder_->all_recorded());
  ASSERT_THAT(notes_, SizeIs(1));
  EXPECT_THAT(notes_[0].text, HasSubstr("the disk is full (history.db)"));
  EXPECT_EQ(notes_[0].next, "free some space");
  store_.broken = false;
  recorder_->on(ended(100));
  EXPECT_TRUE(recorder_->all_recorded());
  EXPECT_EQ(summary().passes, 2);
}

TEST_F(RecorderTest, Tries_again_only_from_time_to_time_and_complains_once) {
  recorder_->on(started());
  store_.broken = true;
  store_.tries = 0;
  for (int second = 0; second < 100; ++second) recorder_->on(ended(second));
  EXPECT_EQ(store_.tries, 4);  // at 0, 30, 60 and 90 s
  EXPECT_THAT(notes_, SizeIs(1));
}

TEST_F(RecorderTest, Tries_once_more_at_the_end) {
  recorder_->on(started());
  store_.broken = true;
  recorder_->on(ended(1));
  store_.broken = false;
  recorder_->on(SessionEnded{});
  EXPECT_TRUE(recorder_->all_recorded());
  EXPECT_EQ(summary().passes, 1);
}

TEST_F(RecorderTest, Spills_what_the_history_never_took_and_imports_it_once) {
  store_.broken = true;
  recorder_->on(started());
  recorder_->on(ended(1));
  recorder_->on(ended(2, OutcomeKind::fail));
  recorder_->on(SessionEnded{});
  EXPECT_FALSE(recorder_->all_recorded());
  ASSERT_THAT(notes_, SizeIs(2));
  EXPECT_THAT(notes_[1].text, HasSubstr("2 runs"));
  EXPECT_THAT(notes_[1].text, HasSubstr(spill_path()));
  for (int times = 0; times < 3; ++times) {
    import(spill_path(), 2);
    EXPECT_EQ(summary().passes, 1);
    EXPECT_EQ(summary().failures, 1);
    ASSERT_TRUE(real_->end_session(1));
  }
  EXPECT_EQ(**real_->latest_output({"suite", "t\xff"}, "00000000000000aa"), "boom \xfe");
  EXPECT_EQ(summary().signatures[0].failure, *failing_run("t", 0).failure);
}

TEST_F(RecorderTest, Imports_into_the_session_that_the_rest_went_to) {
  recorder_->on(started());
  recorder_->on(ended(1));
  store_.broken = true;
  recorder_->on(ended(2));
  recorder_->on(SessionEnded{});
  import(spill_path(), 1);
  const auto runs = real_->recent_runs({"suite", "t\xff"}, 5);
  for (const RecentRun& run : *runs) EXPECT_EQ(run.commit, "c0ffee");
  EXPECT_EQ(summary().passes, 2);
}

TEST_F(RecorderTest, Spills_early_when_too_much_waits_in_memory) {
  recorder_->on(started());
  store_.broken = true;
  for (int second = 0; second < 10'000; ++second) recorder_->on(ended(second));
  EXPECT_NE(spill_path(), "");
  store_.broken = false;
  recorder_->on(ended(50'000));
  recorder_->on(SessionEnded{});
  EXPECT_FALSE(recorder_->all_recorded());
  import(spill_path(), 10'000);
  EXPECT_EQ(summary().passes, 10'001);
}

TEST_F(RecorderTest, May_be_told_its_own_notes) {
  std::ofstream(folder_.file("blocked")) << "a file where a folder should be";
  EventStream events;
  HistoryRecorder recorder(store_,
                           [&](const Note& note) {
                             notes_.push_back(note);
                             events.emit(note);
                           },
                           {folder_.file("blocked")});
  events.add(recorder);
  store_.broken = true;
  events.emit(started());
  for (int second = 1; second < 100; ++second) events.emit(ended(second));
  events.emit(SessionEnded{});
  ASSERT_THAT(notes_, SizeIs(2));
  EXPECT_THAT(notes_[1].text, HasSubstr("99 runs could not be written anywhere"));
}

TEST_F(RecorderTest, Takes_the_next_folder_when_the_first_cannot_be_written) {
  std::ofstream(folder_.file("state")) << "a file where a folder should be";
  store_.broken = true;
  recorder_->on(started());
  recorder_->on(ended(1));
  recorder_->on(SessionEnded{});
  EXPECT_NE(spill_file_in(folder_.file("temporary")), "");
}

TEST_F(RecorderTest, Says_so_when_runs_are_lost) {
  std::ofstream(folder_.file("blocked")) << "a file where a folder should be";
  recorder_ = make_recorder({folder_.file("blocked")});
  store_.broken = true;
  recorder_->on(started());
  recorder_->on(ended(1));
  recorder_->on(SessionEnded{});
  EXPECT_FALSE(recorder_->all_recorded());
  EXPECT_EQ(notes_.back().level, Note::Level::error);
  EXPECT_THAT(notes_.back().text, HasSubstr("1 run could not be written anywhere"));
}

TEST_F(RecorderTest, Spills_what_waits_when_it_goes_away_before_the_session_ends) {
  store_.broken = true;
  recorder_->on(started());
  recorder_->on(ended(1));
  recorder_.reset();
  import(spill_path(), 1);
  EXPECT_EQ(summary().passes, 1);
}

class TrialRecorderTest : public RecorderTest {
 protected:
  void SetUp() override {
    SessionStarted session = started();
    session.command_line = "unflake reproduce suite";
    recorder_->record_trials_in(session);
  }

  static TrialEnded trial(int64_t second, OutcomeKind kind = OutcomeKind::pass) {
    const RunEnded run = ended(second, kind);
    TrialEnded event;
    event.test = run.test;
    event.result = run.result;
    event.purpose = TrialEnded::Purpose::confirm;
    Intervention delay;
    delay.site.api = "read";
    delay.site.file = "queue.cc";
    delay.site.line = 57;
    delay.duration = 200ms;
    event.plan.agent = true;
    event.plan.interventions = {delay};
    event.conditions.one_core = true;
    return event;
  }

  std::vector<RecentRun> trials() {
    const auto found = real_->recent_trials({"suite", "t\xff"}, "", 100'000);
    return found ? *found : std::vector<RecentRun>{};
  }

  std::vector<std::string> sessions() {
    std::vector<std::string> lines;
    EXPECT_TRUE(real_->visit({.session =
                                  [&](const SessionRecord& session) {
                                    lines.push_back(session.command_line);
                                    return Result<void>();
                                  },
                              .run = [](const RunRecord&) { return Result<void>(); }}));
    return lines;
  }
};

TEST_F(TrialRecorderTest, Records_trials_in_a_session_of_their_own) {
  recorder_->on(trial(1, OutcomeKind::fail));
  recorder_->on(trial(2));
  recorder_.reset();
  ASSERT_THAT(trials(), SizeIs(2));
  EXPECT_EQ(trials()[1].purpose, "confirm");
  EXPECT_EQ(trials()[1].plan, "queue.cc:57:read=200ms; one core");
  EXPECT_EQ(trials()[1].signature, "00000000000000aa");
  EXPECT_EQ(trials()[1].commit, "c0ffee");
  EXPECT_THAT(sessions(), testing::ElementsAre("unflake reproduce suite"));
  EXPECT_EQ(summary().runs(), 0) << "they say nothing of what the test does by itself";
  EXPECT_THAT(notes_, testing::IsEmpty());
}

TEST_F(TrialRecorderTest, A_search_without_trials_leaves_no_session) {
  recorder_->on(SearchStarted{});
  recorder_->on(SearchEnded{});
  recorder_.reset();
  EXPECT_THAT(sessions(), testing::IsEmpty());
}

TEST_F(TrialRecorderTest, Trials_at_one_moment_are_told_apart) {
  for (int i = 0; i < 3; ++i) recorder_->on(trial(1));
  recorder_.reset();
  EXPECT_THAT(trials(), SizeIs(3));
}

TEST_F(TrialRecorderTest, Writes_trials_together) {
  for (int i = 0; i < 400; ++i) recorder_->on(trial(1));
  EXPECT_EQ(store_.tries, 2) << "a session, and the first trial";
  EXPECT_THAT(trials(), SizeIs(1));
  recorder_->on(trial(2));
  EXPECT_EQ(store_.tries, 3) << "a second later, all others";
  EXPECT_THAT(trials(), SizeIs(401));
}

TEST_F(TrialRecorderTest, Writes_trials_early_when_many_wait) {
  for (int i = 0; i < 501; ++i) recorder_->on(trial(1));
  EXPECT_THAT(trials(), SizeIs(501));
}

TEST_F(TrialRecorderTest, Leaves_cancelled_trials_out) {
  TrialEnded cancelled = trial(1);
  cancelled.result.process.end = ProcessResult::End::cancelled;
  recorder_->on(cancelled);
  recorder_.reset();
  EXPECT_THAT(sessions(), testing::IsEmpty());
}

TEST_F(TrialRecorderTest, Spills_trials_and_imports_them_as_trials) {
  store_.broken = true;
  recorder_->on(trial(1, OutcomeKind::fail));
  recorder_->on(trial(2));
  recorder_.reset();
  EXPECT_THAT(notes_.back().text, HasSubstr("2 runs could not be written to the history"));
  import(spill_path(), 2);
  ASSERT_THAT(trials(), SizeIs(2));
  EXPECT_EQ(trials()[0].purpose, "confirm");
  EXPECT_EQ(summary().runs(), 0);
}

TEST_F(RecorderTest, Keeps_the_sessions_of_one_spill_file_apart) {
  store_.broken = true;
  for (const char* commit : {"one", "two"}) {
    SessionStarted event = started();
    event.surroundings.commit = commit;
    recorder_->on(event);
    recorder_->on(ended(commit[0]));
    recorder_->on(SessionEnded{});
  }
  import(spill_path(), 2);
  const auto runs = *real_->recent_runs({"suite", "t\xff"}, 5);
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_NE(runs[0].commit, runs[1].commit);
}

}  // namespace
}  // namespace unflake
