#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/store_fixture.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class StoreBatchesTest : public StoreFixture {
 protected:
  // Of five tests, each of which fails from time to time.
  static std::vector<RunRecord> runs_from(int64_t first_second, int count) {
    std::vector<RunRecord> runs;
    for (int64_t second = first_second; second < first_second + count; ++second) {
      const std::string name = fmt::format("t{}", second % 5);
      runs.push_back(second % 7 == 0 ? failing_run(name, second) : passing_run(name, second));
    }
    return runs;
  }

  int64_t all_runs() {
    int64_t runs = 0;
    const auto tests = store_->summarise("*", SIZE_MAX);
    EXPECT_TRUE(tests);
    for (const TestSummary& test : *tests) runs += test.passes + test.failures + test.skips;
    return runs;
  }
};

UNFLAKE_ON_EVERY_BACKEND(StoreBatchesTest);

TEST_P(StoreBatchesTest, A_batch_says_the_same_as_its_runs_one_by_one) {
  const auto single = open_project("single");
  const auto session = single->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE(session);
  const auto runs = runs_from(0, 100);
  for (const RunRecord& run : runs) ASSERT_TRUE(single->record(*session, run));
  ASSERT_TRUE(single->end_session(*session));
  const SessionId batch = begin();
  record_all(batch, runs);
  end(batch);
  for (const bool settled : {false, true}) {
    if (settled) settle();
    for (int i = 0; i < 5; ++i) {
      const unflake::TestId test{"suite", fmt::format("t{}", i)};
      const TestSummary one = **single->summarise_test(test), other = summary(test.name);
      EXPECT_EQ(one.passes, other.passes);
      EXPECT_EQ(one.failures, other.failures);
      EXPECT_EQ(one.pass_durations.mean, other.pass_durations.mean);
      EXPECT_EQ(one.last, other.last);
      EXPECT_EQ(*single->latest_output(test, "00000000000000aa"),
                *store_->latest_output(test, "00000000000000aa"));
    }
  }
}

TEST_P(StoreBatchesTest, A_batch_that_is_delivered_twice_counts_once) {
  const SessionId session = begin();
  for (int time = 0; time < 3; ++time) {
    record_all(session, runs_from(0, 50));
    if (time == 1) settle();
  }
  end(session);
  EXPECT_EQ(all_runs(), 50);
  EXPECT_EQ(prevalence().runs, 50);
}

TEST_P(StoreBatchesTest, Overlapping_batches_count_each_run_once) {
  const SessionId session = begin();
  record_all(session, runs_from(0, 30));
  record_all(session, runs_from(20, 30));
  end(session);
  EXPECT_EQ(all_runs(), 50);
  EXPECT_EQ(prevalence().runs, 50);
}

TEST_P(StoreBatchesTest, A_run_that_is_twice_in_one_batch_counts_once) {
  const SessionId session = begin();
  record_all(session, {passing_run("t", 0), failing_run("t", 1), passing_run("t", 0)});
  EXPECT_EQ(summary("t").passes, 1);
  EXPECT_EQ(summary("t").failures, 1);
}

TEST_P(StoreBatchesTest, A_run_counts_once_whether_it_comes_alone_or_in_a_batch) {
  const SessionId session = begin();
  record(session, passing_run("t", 0));
  record_all(session, {passing_run("t", 0), passing_run("t", 1)});
  record(session, passing_run("t", 1));
  EXPECT_EQ(summary("t").passes, 2);
  end(session);
  settle();
  record(session, passing_run("t", 1));
  record_all(session, {passing_run("t", 0), passing_run("t", 1)});
  EXPECT_EQ(summary("t").passes, 2);
  EXPECT_EQ(prevalence().runs, 2);
}

TEST_P(StoreBatchesTest, A_batch_into_no_session_leaves_nothing_behind) {
  const auto recorded = store_->record_all(4711, runs_from(0, 10));
  ASSERT_FALSE(recorded);
  EXPECT_EQ(all_runs(), 0);
  const SessionId session = begin();
  record_all(session, runs_from(0, 10));
  EXPECT_EQ(all_runs(), 10);
}

TEST_P(StoreBatchesTest, An_empty_batch_is_fine) {
  const SessionId session = begin();
  record_all(session, {});
  end(session);
  EXPECT_EQ(all_runs(), 0);
}

TEST_P(StoreBatchesTest, Many_batches_are_all_there_while_they_move_on) {
  const int batches = 20, runs_each = 1'000, tests = 100;
  for (int batch = 0; batch < batches; ++batch) {
    const SessionId session = begin();
    std::vector<RunRecord> runs;
    for (int i = 0; i < runs_each; ++i)
      runs.push_back(passing_run(fmt::format("t{}", i % tests), batch * runs_each + i, 1ms));
    record_all(session, runs);
    end(session);
    if (batch % 8 == 0) settle();
  }
  const TestSummary test = summary("t77");
  EXPECT_EQ(test.passes, batches * runs_each / tests);
  EXPECT_EQ(test.pass_durations.median, 1ms);
  EXPECT_EQ(count("t77").passes, batches * runs_each / tests);
  EXPECT_EQ(store_->recent_runs({"suite", "t77"}, 5)->front().started,
            at_second((batches - 1) * runs_each + 977));
  EXPECT_EQ(all_runs(), batches * runs_each);
  EXPECT_EQ(prevalence().runs, batches * runs_each);
}

TEST_P(StoreBatchesTest, Hostile_names_are_kept_byte_by_byte) {
  const std::vector<std::string> names = {std::string("a\0b", 3),
                                          std::string("a\0c", 3),
                                          "",
                                          "\xff\xfe\xc3(",
                                          "'; DROP TABLE runs; --",
                                          std::string(64 * 1024, 'x'),
                                          std::string(64 * 1024, 'y'),
                                          "\xed\xa0\x80 half a pair",
                                          "a\nb\tc\x1b[31m",
                                          std::string(1, '\0'),
                                          "\\000 \\\\ %s {}"};
  const SessionId session = begin();
  std::vector<RunRecord> runs;
  for (size_t i = 0; i < names.size(); ++i) {
    runs.push_back(failing_run(names[i], static_cast<int64_t>(i), "sig " + names[i]));
    runs.back().test.target = names[names.size() - 1 - i];
    runs.back().failure->message = names[i];
    runs.back().output = names[i].substr(0, 100) + "!";
  }
  record_all(session, runs);
  end(session);
  for (const RunRecord& run : runs) {
    const auto found = store_->summarise_test(run.test);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->failures, 1);
    ASSERT_EQ((*found)->signatures.size(), 1u);
    EXPECT_TRUE((*found)->signatures[0].signature == run.signature);
    EXPECT_EQ(**store_->latest_output(run.test, run.signature), run.output);
  }
  EXPECT_EQ(all_runs(), static_cast<int64_t>(names.size()));
}

TEST_P(StoreBatchesTest, Times_that_make_no_sense_are_taken_as_they_are) {
  const SessionId session = begin();
  RunRecord early = failing_run("t", 0), late = passing_run("t", 0),
            backwards = passing_run("t", 1);
  early.started = TimePoint::min();
  early.duration = Duration::max();
  late.started = TimePoint::max();
  late.duration = Duration::max();
  backwards.duration = -5s;
  record_all(session, {early, late, backwards});
  record(session, passing_run("t", 2));
  end(session);
  settle();
  EXPECT_EQ(summary("t").passes, 3);
  EXPECT_EQ(summary("t").failures, 1);
  EXPECT_EQ(summary("t").pass_durations.min, 0s);
  EXPECT_EQ(prevalence().builds, 1);
  EXPECT_EQ(flaky().size(), 1u);
}

TEST_P(StoreBatchesTest, Projects_share_a_history_and_do_not_see_each_other) {
  const auto other = open_project("other");
  const SessionId session = begin();
  record_all(session, {failing_run("t", 0), passing_run("t", 1), passing_run("mine", 2)});
  ASSERT_TRUE(store_->remember_target({"suite", Framework::gtest, "mine", {}}));
  end(session);
  EXPECT_TRUE(other->summarise("*", 10)->empty());
  EXPECT_FALSE(other->summarise_test({"suite", "t"})->has_value());
  EXPECT_TRUE(other->recent_runs({"suite", "t"}, 10)->empty());
  EXPECT_FALSE(other->latest_output({"suite", "t"}, "00000000000000aa")->has_value());
  EXPECT_EQ(other->count_runs({"suite", "t"}, "", {})->passes, 0);
  EXPECT_TRUE(other->lifecycle().flaky_failures({}, 10)->empty());
  EXPECT_FALSE(other->find_target("suite")->has_value());
  const auto theirs = other->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE(theirs);
  ASSERT_TRUE(other->record(*theirs, passing_run("t", 0)));
  ASSERT_TRUE(other->remember_target({"suite", Framework::doctest, "theirs", {}}));
  EXPECT_EQ((*other->summarise_test({"suite", "t"}))->passes, 1);
  EXPECT_EQ((*other->find_target("suite"))->path, "theirs");
  EXPECT_EQ(summary("t").failures, 1);
  EXPECT_EQ((*store_->find_target("suite"))->path, "mine");
}

TEST_P(StoreBatchesTest, A_session_belongs_to_one_project) {
  SessionRecord record = session_of_commit("c0ffee");
  record.uuid = "1234";
  const SessionId session = begin(record);
  const auto other = open_project("other");
  EXPECT_FALSE(other->begin_session(record));
  EXPECT_FALSE(other->record_all(session, runs_from(0, 3)));
  EXPECT_FALSE(other->suppress(session, {"suite", "t"}, "aa"));
}

TEST_P(StoreBatchesTest, Counts_the_runs_of_a_window_whose_end_is_outside) {
  const SessionId session = begin();
  RunRecord planned = failing_run("t", 15), skipped = passing_run("t", 16);
  planned.plan = "plan";
  skipped.outcome = OutcomeKind::skipped;
  record_all(session, {passing_run("t", 10), failing_run("t", 11), failing_run("t", 12, "bb"),
                       planned, skipped, passing_run("t", 20)});
  for (const bool settled : {false, true}) {
    if (settled) settle();
    const RunCounts all = count("t");
    EXPECT_EQ(all.passes, 2);
    EXPECT_EQ(all.failures, 2);
    EXPECT_EQ(all.with_signature, 1);
    EXPECT_EQ(all.last_failure, at_second(12));
    EXPECT_FALSE(all.cut);
    const RunCounts some = count("t", {at_second(10), at_second(12)});
    EXPECT_EQ(some.passes, 1);
    EXPECT_EQ(some.failures, 1);
    EXPECT_EQ(count("t", {at_second(12), at_second(20)}).passes, 0);
    EXPECT_EQ(count("t", {at_second(20), at_second(21)}).last_failure, std::nullopt);
    EXPECT_EQ(count("t", {}, "unknown").with_signature, 0);
  }
  EXPECT_EQ(count("unknown").passes, 0);
}

}  // namespace
}  // namespace unflake
