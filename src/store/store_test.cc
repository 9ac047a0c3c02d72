#include "store/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/store_fixture.h"
#include "util/time.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class StoreTest : public StoreFixture {};
UNFLAKE_ON_EVERY_BACKEND(StoreTest);

TEST_P(StoreTest, Summarises_what_was_recorded_whether_folded_or_not) {
  const SessionId session = begin();
  for (int second = 0; second < 10; ++second) record(session, passing_run("t", second));
  record(session, failing_run("t", 10));
  for (const bool folded : {false, true}) {
    if (folded) end(session);
    const TestSummary test = summary("t");
    EXPECT_EQ(test.passes, 10) << folded;
    EXPECT_EQ(test.failures, 1) << folded;
    EXPECT_EQ(test.first, at_second(0)) << folded;
    EXPECT_EQ(test.last, at_second(10)) << folded;
  }
}

TEST_P(StoreTest, Adds_runs_after_a_fold_to_those_before) {
  const SessionId session = begin();
  record(session, passing_run("t", 0, 1ms));
  end(session);
  record(session, passing_run("t", 1, 3ms));
  const DurationSummary durations = summary("t").pass_durations;
  EXPECT_EQ(durations.runs, 2);
  EXPECT_EQ(durations.min, 1ms);
  EXPECT_EQ(durations.max, 3ms);
  EXPECT_EQ(durations.mean, 2ms);
}

TEST_P(StoreTest, A_run_of_unknown_duration_counts_and_says_nothing_of_durations) {
  const SessionId session = begin();
  record(session, failing_run("t", 0));
  record(session, passing_run("t", 1, 1ms));
  for (const int second : {2, 3}) record(session, passing_run("t", second, unknown_duration));
  record(session, passing_run("t", 4, 3ms));
  record(session, passing_run("u", 5, unknown_duration));
  for (const bool folded : {false, true}) {
    if (folded) end(session);
    const TestSummary test = summary("t");
    EXPECT_EQ(test.passes, 4) << folded;
    EXPECT_EQ(test.pass_durations.runs, 2) << folded;
    EXPECT_EQ(test.pass_durations.min, 1ms) << folded;
    EXPECT_EQ(test.pass_durations.mean, 2ms) << folded;
    EXPECT_EQ(summary("u").passes, 1) << folded;
    EXPECT_EQ(summary("u").pass_durations.runs, 0) << folded;
  }
  EXPECT_EQ((*store_->recent_runs({"suite", "u"}, 1))[0].duration, unknown_duration);
}

TEST_P(StoreTest, Counts_a_run_once_that_is_recorded_again) {
  const SessionId session = begin();
  record(session, failing_run("t", 0));
  record(session, failing_run("t", 0));
  end(session);
  record(session, failing_run("t", 0));
  EXPECT_EQ(summary("t").failures, 1);
  end(session);
  EXPECT_EQ(summary("t").failures, 1);
  EXPECT_EQ(store_->recent_runs({"suite", "t"}, 10)->size(), 1u);
}

TEST_P(StoreTest, Gives_a_session_with_a_known_uuid_back) {
  SessionRecord record = session_of_commit("c0ffee");
  record.uuid = "1234";
  EXPECT_EQ(*store_->begin_session(record), *store_->begin_session(record));
  record.uuid.clear();
  EXPECT_NE(*store_->begin_session(record), *store_->begin_session(record));
}

TEST_P(StoreTest, Finds_when_a_session_began_as_it_was_recorded_first) {
  EXPECT_EQ(*store_->find_session("1234"), std::nullopt);
  SessionRecord record = session_of_commit("c0ffee");
  record.uuid = "1234";
  record.started = at_second(7);
  ASSERT_TRUE(store_->begin_session(record));
  record.started = at_second(8);
  ASSERT_TRUE(store_->begin_session(record));
  EXPECT_EQ(*store_->find_session("1234"), at_second(7));
  EXPECT_EQ(*store_->find_session("12345"), std::nullopt);
}

TEST_P(StoreTest, Has_exact_quantiles_for_few_runs) {
  const SessionId session = begin();
  for (int i = 1; i <= 100; ++i) record(session, passing_run("t", i, i * 1017us));
  const DurationSummary durations = summary("t").pass_durations;
  EXPECT_EQ(durations.median, 50 * 1017us);
  EXPECT_EQ(durations.p95, 95 * 1017us);
  EXPECT_FALSE(durations.approximate);
}

TEST_P(StoreTest, Summarises_several_tests_as_it_does_each) {
  const SessionId session = begin();
  std::vector<TestId> wanted;
  for (int i = 0; i < 120; ++i) {
    record(session, passing_run(fmt::format("t{}", i), i, 1ms));
    record(session, failing_run(fmt::format("t{}", i), 200 + i));
    wanted.push_back({"suite", fmt::format("t{}", 119 - i)});
    if (i % 40 == 0) wanted.push_back({"suite", fmt::format("unknown {}", i)});
  }
  const auto summaries = store_->summarise_tests(wanted);
  ASSERT_TRUE(summaries) << to_string(summaries.error());
  ASSERT_EQ(summaries->size(), 120u);
  EXPECT_EQ(summaries->front().test.name, "t119");
  for (const TestSummary& one : *summaries) {
    EXPECT_EQ(one.passes, 1);
    EXPECT_EQ(one.failures, 1);
    EXPECT_EQ(one.signatures.size(), 1u);
  }
  EXPECT_EQ(store_->summarise_tests(std::vector{wanted.front()})->size(), 1u);
}

TEST_P(StoreTest, Approximates_quantiles_of_many_runs) {
  const SessionId session = begin();
  const int runs = 12'000;
  std::vector<RunRecord> all;
  for (int i = 1; i <= runs; ++i) all.push_back(passing_run("t", i, i * 1us));
  record_all(session, all);
  const DurationSummary durations = summary("t").pass_durations;
  EXPECT_TRUE(durations.approximate);
  EXPECT_EQ(durations.runs, runs);
  EXPECT_NEAR(static_cast<double>(durations.median.count()), 6000, 6000 * 0.03);
  EXPECT_NEAR(static_cast<double>(durations.p95.count()), 11'400, 11'400 * 0.03);
  EXPECT_EQ(durations.max, 12ms);
}

TEST_P(StoreTest, Tells_passing_failing_and_skipped_runs_apart) {
  const SessionId session = begin();
  RunRecord run = passing_run("t", 0, 1ms);
  record(session, run);
  for (const OutcomeKind kind : {OutcomeKind::fail, OutcomeKind::crash, OutcomeKind::timeout}) {
    run = failing_run("t", 1 + static_cast<int>(kind));
    run.outcome = kind;
    run.duration = 9ms;
    record(session, run);
  }
  run = passing_run("t", 10, 77ms);
  run.outcome = OutcomeKind::skipped;
  record(session, run);
  end(session);
  const TestSummary test = summary("t");
  EXPECT_EQ(test.passes, 1);
  EXPECT_EQ(test.failures, 3);
  EXPECT_EQ(test.skips, 1);
  EXPECT_EQ(test.pass_durations.max, 1ms);
  EXPECT_EQ(test.fail_durations.median, 9ms);
  EXPECT_EQ(test.signatures.size(), 3u);  // one signature, three outcomes
}

TEST_P(StoreTest, Says_how_many_signatures_there_are_when_it_lists_only_the_most_frequent) {
  const SessionId session = begin();
  for (int i = 0; i < 300; ++i)
    record(session, failing_run("t", i, "signature " + std::to_string(i)));
  EXPECT_EQ(summary("t").signatures.size(), 200u);
  EXPECT_EQ(summary("t").signature_count, 300);
}

TEST_P(StoreTest, Lists_signatures_most_frequent_first_with_their_commits) {
  const SessionId old_session = begin("old");
  record(old_session, failing_run("t", 1, "00000000000000aa"));
  record(old_session, failing_run("t", 2, "00000000000000bb"));
  end(old_session);
  const SessionId new_session = begin("new");
  record(new_session, failing_run("t", 3, "00000000000000bb"));
  const auto signatures = summary("t").signatures;
  ASSERT_EQ(signatures.size(), 2u);
  EXPECT_EQ(signatures[0].signature, "00000000000000bb");
  EXPECT_EQ(signatures[0].runs, 2);
  EXPECT_EQ(signatures[0].first_commit, "old");
  EXPECT_EQ(signatures[0].last_commit, "new");
  EXPECT_EQ(signatures[0].failure, *failing_run("t", 2).failure);
  EXPECT_EQ(signatures[1].last_commit, "old");
}

TEST_P(StoreTest, Ranks_by_the_failure_rate_that_is_proven) {
  const SessionId session = begin();
  for (int i = 0; i < 100; ++i) {
    record(session, i % 2 ? failing_run("half", i) : passing_run("half", i));
    record(session, i == 0 ? failing_run("rare", i) : passing_run("rare", i));
    record(session, passing_run("solid", i));
  }
  record(session, failing_run("once", 0));
  end(session);
  EXPECT_THAT(ranking("*"), ElementsAre("half", "once", "rare", "solid"));
  EXPECT_THAT(ranking("*", 2), ElementsAre("half", "once"));
  EXPECT_THAT(ranking("suite:r*"), ElementsAre("rare"));
  EXPECT_THAT(ranking("other:*"), ElementsAre());
}

TEST_P(StoreTest, Knows_nothing_of_tests_that_never_ran) {
  EXPECT_EQ(*store_->summarise_test({"suite", "t"}), std::nullopt);
  EXPECT_TRUE(store_->recent_runs({"suite", "t"}, 5)->empty());
  EXPECT_EQ(*store_->latest_output({"suite", "t"}, "00000000000000aa"), std::nullopt);
}

TEST_P(StoreTest, Shows_recent_runs_newest_first_across_a_fold) {
  const SessionId session = begin("c1");
  record(session, passing_run("t", 1));
  record(session, failing_run("t", 3));
  end(session);
  RunRecord late = passing_run("t", 2);
  late.attempt = 4;
  record(session, late);
  const auto runs = *store_->recent_runs({"suite", "t"}, 2);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].started, at_second(3));
  EXPECT_EQ(runs[0].outcome, OutcomeKind::fail);
  EXPECT_EQ(runs[0].signature, "00000000000000aa");
  EXPECT_EQ(runs[0].commit, "c1");
  EXPECT_EQ(runs[1].attempt, 4);
}

TEST_P(StoreTest, Keeps_one_output_a_second_of_a_test_that_fails_all_the_time) {
  const SessionId session = begin();
  RunRecord run = failing_run("t", 0);
  const auto fail_again = [&](Duration after, const std::string& output) {
    run.started += after;
    run.output = output;
    record(session, run);
  };
  for (int i = 0; i < 20; ++i) fail_again(1ms, "one of the first");
  fail_again(1ms, "too soon");
  EXPECT_EQ(**store_->latest_output(run.test, run.signature), "one of the first");
  fail_again(1s, "a second later");
  EXPECT_EQ(**store_->latest_output(run.test, run.signature), "a second later");
  EXPECT_EQ(summary("t").failures, 22);
}

TEST_P(StoreTest, Keeps_the_newest_outputs_of_a_test_with_ever_new_signatures) {
  const SessionId session = begin();
  const auto signature = [](int second) { return fmt::format("{:016x}", second); };
  for (int second = 0; second < 300; ++second)
    record(session, failing_run("t", second, signature(second)));
  EXPECT_EQ(*store_->latest_output({"suite", "t"}, signature(50)), std::nullopt);
  EXPECT_EQ(**store_->latest_output({"suite", "t"}, signature(299)), "output at 299");
  EXPECT_EQ(**store_->latest_output({"suite", "t"}, signature(150)), "output at 150");
  EXPECT_EQ(summary("t").failures, 300);
}

TEST_P(StoreTest, Bounds_an_output_and_keeps_its_ends) {
  const SessionId session = begin();
  RunRecord run = failing_run("t", 0);
  run.output = "first" + std::string(1'000'000, '.') + "last";
  record(session, run);
  const std::string output = **store_->latest_output(run.test, run.signature);
  EXPECT_LT(output.size(), 70'000u);
  EXPECT_TRUE(output.starts_with("first"));
  EXPECT_TRUE(output.ends_with("last"));
}

TEST_P(StoreTest, Keeps_bytes_that_are_no_text) {
  const SessionId session = begin();
  const std::string bytes("\xff\x00\x1b[31m'\"\xc3", 9);
  RunRecord run = failing_run(bytes, 0, "sig" + bytes);
  run.output = bytes;
  run.failure->message = bytes;
  record(session, run);
  end(session);
  EXPECT_EQ(summary(bytes).signatures[0].failure.message, bytes);
  EXPECT_EQ(**store_->latest_output(run.test, run.signature), bytes);
}

TEST_P(StoreTest, Finds_a_target_again) {
  const TargetRecord target{"suite", Framework::gtest, "build/suite", {"--flag", "", "a b"}};
  ASSERT_TRUE(store_->remember_target(target));
  TargetRecord changed = target;
  changed.path = "out/suite";
  ASSERT_TRUE(store_->remember_target(changed));
  open();
  const auto found = *store_->find_target("suite");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "out/suite");
  EXPECT_EQ(found->framework, Framework::gtest);
  EXPECT_EQ(found->argv, target.argv);
  EXPECT_EQ(*store_->find_target("other"), std::nullopt);
}

TEST_P(StoreTest, Remembers_everything_when_opened_again) {
  const SessionId session = begin();
  record(session, failing_run("t", 0));
  open();
  EXPECT_EQ(summary("t").failures, 1);
  record(session, failing_run("t", 1));
  EXPECT_EQ(summary("t").failures, 2);
}

TEST_P(StoreTest, Refuses_a_run_of_no_session) {
  const auto recorded = store_->record(77, passing_run("t", 0));
  ASSERT_FALSE(recorded);
  record(begin(), passing_run("t", 0));
  EXPECT_EQ(summary("t").passes, 1);
}

class LastFailuresTest : public StoreFixture {
 protected:
  SessionId begin_at(int64_t second, const std::string& command_line,
                     const std::string& machine = "machine") {
    SessionRecord record = session_of_commit("c0ffee");
    record.started = at_second(second);
    record.command_line = command_line;
    record.surroundings.machine = machine;
    return begin(record);
  }

  std::string last(const SessionQuestion& question) {
    const auto found = store_->last_failures(question);
    EXPECT_TRUE(found) << to_string(found.error());
    if (!found || !*found) return "none";
    std::string text = (*found)->command_line + ((*found)->finished ? ":" : " (unfinished):");
    for (const TestId& test : (*found)->failed) text += " " + test.name;
    return text;
  }
};
UNFLAKE_ON_EVERY_BACKEND(LastFailuresTest);

TEST_P(LastFailuresTest, Are_those_of_the_last_session_wherever_its_runs_are) {
  EXPECT_EQ(last({"unflake run "}), "none");
  const SessionId first = begin_at(0, "unflake run a");
  record(first, failing_run("old", 0));
  end(first);
  const SessionId second = begin_at(10, "unflake run b");
  record(second, failing_run("flaky", 11));
  record(second, passing_run("flaky", 12));
  record(second, passing_run("good", 13));
  record(second, failing_run("bad", 14));
  for (const char* state : {"recorded", "ended", "settled"}) {
    if (state == std::string("ended")) end(second);
    if (state == std::string("settled")) settle();
    const std::string how =
        state == std::string("recorded") ? " (unfinished): bad flaky old" : ": bad flaky";
    EXPECT_EQ(last({"unflake run "}), "unflake run b" + how) << state;
  }
}

TEST_P(LastFailuresTest, Of_a_stopped_session_are_completed_by_the_one_before) {
  const SessionId first = begin_at(0, "unflake run");
  record_all(first, {failing_run("a", 0), failing_run("b", 1)});
  end(first);
  const SessionId second = begin_at(10, "unflake run --rerun-failed");
  record(second, passing_run("a", 10));
  ASSERT_TRUE(store_->stop_session(second));
  EXPECT_EQ(last({"unflake run"}), "unflake run --rerun-failed (unfinished): b");
}

TEST_P(LastFailuresTest, Are_asked_for_by_command_target_machine_and_build) {
  const SessionId run = begin_at(0, "unflake run suite");
  record(run, failing_run("a", 0));
  end(run);
  SessionRecord record_of_build = session_of_commit("c0ffee");
  record_of_build.started = at_second(10);
  record_of_build.command_line = "unflake run other";
  record_of_build.surroundings.build = "build-7";
  const SessionId in_build = begin(record_of_build);
  RunRecord other = failing_run("b", 10);
  other.test.target = "other";
  record(in_build, other);
  end(in_build);
  const SessionId ingested = begin_at(20, "unflake ingest x.xml");
  record(ingested, failing_run("c", 20));
  end(ingested);
  const SessionId elsewhere = begin_at(30, "unflake run suite", "far");
  record(elsewhere, failing_run("d", 30));
  end(elsewhere);
  EXPECT_EQ(last({"unflake run "}), "unflake run suite: d");
  EXPECT_EQ(last({"unflake run ", "other"}), "unflake run other: b");
  EXPECT_EQ(last({"unflake run ", "", "machine"}), "unflake run other: b");
  EXPECT_EQ(last({"unflake run ", "suite", "machine"}), "unflake run suite: a");
  EXPECT_EQ(last({"unflake run ", "", "", "build-7"}), "unflake run other: b");
  EXPECT_EQ(last({"unflake run ", "none"}), "none");
}

}  // namespace
}  // namespace unflake
