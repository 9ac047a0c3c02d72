#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/store_fixture.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

RunRecord trial(RunRecord run, const std::string& purpose, const std::string& plan = "") {
  run.purpose = purpose;
  run.plan = plan;
  run.output.clear();
  return run;
}

Retention young(Duration trials) {
  Retention retention;
  retention.trials = trials;
  return retention;
}

Retention newest(int trials) {
  Retention retention;
  retention.most_trials = trials;
  return retention;
}

class StoreTrialsTest : public StoreFixture {
 protected:
  static SessionRecord session_of(const std::string& uuid, const std::string& build) {
    SessionRecord session = session_of_commit("c1");
    session.uuid = uuid;
    session.surroundings.build = build;
    return session;
  }

  std::vector<RecentRun> trials(const std::string& name, const std::string& purpose = "",
                                size_t most = 100'000) {
    const auto found = store_->recent_trials({"suite", name}, purpose, most);
    EXPECT_TRUE(found) << to_string(found.error());
    return found ? *found : std::vector<RecentRun>{};
  }

  RetentionCount forget(const Retention& retention, int64_t now) {
    const auto forgotten = store_->forget(retention, at_second(now));
    EXPECT_TRUE(forgotten) << to_string(forgotten.error());
    return forgotten ? *forgotten : RetentionCount{};
  }

  // Everything that is said of tests and of builds, in one text.
  std::string all_figures() {
    std::string text;
    const auto summaries = store_->summarise("*", 100);
    EXPECT_TRUE(summaries);
    for (const TestSummary& test : *summaries) text += text_of(test);
    for (const char* name : {"t", "u", "v"}) {
      const auto one = store_->summarise_test({"suite", name});
      EXPECT_TRUE(one);
      text += *one ? text_of(**one) : fmt::format("{} has none\n", name);
      const RunCounts counts = count(name);
      text += fmt::format("{} {} {}\n", counts.passes, counts.failures, counts.with_signature);
      for (const RecentRun& run : *store_->recent_runs({"suite", name}, 100))
        text += fmt::format("{} {} {}\n", seconds(run.started), to_string(run.outcome), run.plan);
      text += store_->latest_output({"suite", name}, "00000000000000aa")->value_or("none") + "\n";
    }
    for (const FlakyFailure& failure : flaky())
      text += fmt::format("{} {} {} {} {}\n", failure.test.name, failure.runs, failure.builds,
                          failure.wasted.count(), seconds(failure.last));
    const Prevalence all = prevalence();
    text += fmt::format("{} tests {} builds {} failed {} runs {} flaky {} {} in {} us\n", all.tests,
                        all.builds, all.failed_builds, all.runs, all.flaky_tests,
                        all.flaky_failures, all.flaky_builds, all.median_build.count());
    const auto last = store_->last_failures({"unflake"});
    EXPECT_TRUE(last);
    if (last && *last)
      for (const TestId& test : (*last)->failed) text += to_string(test) + " failed last\n";
    return text;
  }

  static int64_t seconds(TimePoint time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time - at_second(0)).count();
  }

  static std::string text_of(const TestSummary& test) {
    std::string text =
        fmt::format("{} {} {} {} {}..{} {} {}\n", test.test.name, test.passes, test.failures,
                    test.skips, seconds(test.first), seconds(test.last),
                    test.pass_durations.mean.count(), test.fail_durations.median.count());
    for (const SignatureSummary& one : test.signatures)
      text += fmt::format("{} {}\n", one.signature, one.runs);
    return text;
  }
};

UNFLAKE_ON_EVERY_BACKEND(StoreTrialsTest);

TEST_P(StoreTrialsTest, Are_in_none_of_the_figures) {
  const SessionId build = begin(session_of("build", "b"));
  record_all(build, {failing_run("t", 1), passing_run("t", 2), failing_run("u", 3)});
  end(build);
  const std::string before = all_figures();
  const std::vector<RunRecord> all = {trial(passing_run("t", 10), "profile", "calls recorded"),
                                      trial(failing_run("t", 11), "candidate", "a.cc:1:read=200ms"),
                                      trial(failing_run("t", 12, "bb"), "confirm", "one core"),
                                      trial(passing_run("u", 13), "baseline"),
                                      trial(failing_run("u", 14), "baseline"),
                                      trial(passing_run("u", 15), "", "of an old export"),
                                      trial(failing_run("v", 16), "trace", "calls recorded")};
  const SessionId search = begin(session_of("search", "local:1"));
  record_all(search, all);
  record_all(build, all);
  const SessionId other = begin(session_of("other", "b"));
  for (const RunRecord& one : all) record(other, one);
  EXPECT_EQ(all_figures(), before);
  end(search);
  end(other);
  end(build);
  EXPECT_EQ(all_figures(), before);
  settle();
  EXPECT_EQ(all_figures(), before);
  EXPECT_THAT(trials("t"), SizeIs(9));
}

TEST_P(StoreTrialsTest, Come_newest_first_with_their_purpose_and_plan) {
  const SessionId session = begin("c7");
  RunRecord failed = trial(failing_run("t", 3), "candidate", "a.cc:1:read=200ms; one core");
  failed.attempt = 7;
  record_all(session, {trial(passing_run("t", 1, 4ms), "baseline"), failed, passing_run("t", 9),
                       trial(passing_run("t", 2), "candidate", "b.cc:2=1s")});
  const auto all = trials("t");
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].started, at_second(3));
  EXPECT_EQ(all[0].purpose, "candidate");
  EXPECT_EQ(all[0].plan, "a.cc:1:read=200ms; one core");
  EXPECT_EQ(all[0].outcome, OutcomeKind::fail);
  EXPECT_EQ(all[0].signature, "00000000000000aa");
  EXPECT_EQ(all[0].attempt, 7);
  EXPECT_EQ(all[0].commit, "c7");
  EXPECT_EQ(all[2].purpose, "baseline");
  EXPECT_EQ(all[2].plan, "");
  EXPECT_EQ(all[2].signature, "");
  EXPECT_EQ(all[2].duration, 4ms);
  ASSERT_THAT(trials("t", "candidate"), SizeIs(2));
  EXPECT_EQ(trials("t", "candidate", 1)[0].started, at_second(3));
  EXPECT_THAT(trials("t", "dose"), IsEmpty());
  EXPECT_THAT(trials("unknown"), IsEmpty());
  EXPECT_THAT(*store_->recent_runs({"suite", "t"}, 10), SizeIs(1));
}

TEST_P(StoreTrialsTest, That_are_recorded_again_are_there_once) {
  const SessionId session = begin();
  const std::vector<RunRecord> all = {trial(failing_run("t", 1), "inject", "a.cc:1=1s"),
                                      trial(passing_run("t", 2), "inject", "a.cc:1=1s")};
  record_all(session, all);
  record_all(session, all);
  record(session, all[0]);
  EXPECT_THAT(trials("t"), SizeIs(2));
}

TEST_P(StoreTrialsTest, Make_their_test_known_by_name_alone) {
  const SessionId session = begin();
  record_all(session, {trial(passing_run("tried", 1), "trace"), passing_run("ran", 1)});
  EXPECT_EQ(*store_->summarise_test({"suite", "tried"}), std::nullopt);
  EXPECT_THAT(ranking("*"), ElementsAre("ran"));
  EXPECT_THAT(*store_->find_tests("suite:*", 10),
              ElementsAre(TestId{"suite", "ran"}, TestId{"suite", "tried"}));
  EXPECT_THAT(*store_->find_tests("*:tried", 10), SizeIs(1));
  EXPECT_THAT(*store_->find_tests("*", 1), SizeIs(1));
  EXPECT_THAT(*open_project("other")->find_tests("*", 10), IsEmpty());
}

TEST_P(StoreTrialsTest, Go_when_they_are_old_and_leave_the_plain_runs) {
  const SessionId session = begin();
  record_all(session, {passing_run("t", 1), trial(passing_run("t", 2), "dose", "a.cc:1=1s"),
                       trial(passing_run("t", 60), "dose", "a.cc:1=2s")});
  const RetentionCount gone = forget(young(50s), 100);
  EXPECT_EQ(gone.trials, 1);
  EXPECT_EQ(gone.runs, 0);
  ASSERT_THAT(trials("t"), SizeIs(1));
  EXPECT_EQ(trials("t")[0].plan, "a.cc:1=2s");
  EXPECT_EQ(summary("t").passes, 1);
  EXPECT_EQ(*store_->forgotten_before(), std::nullopt) << "rates are as they were";
}

TEST_P(StoreTrialsTest, Of_each_test_the_newest_stay) {
  const SessionId session = begin();
  std::vector<RunRecord> all;
  for (int second = 0; second < 30; ++second) {
    all.push_back(trial(passing_run("t", second), "candidate", fmt::format("plan {}", second)));
    if (second < 3) all.push_back(trial(passing_run("u", second), "candidate"));
  }
  record_all(session, all);
  EXPECT_EQ(forget(newest(10), 100).trials, 20);
  ASSERT_THAT(trials("t"), SizeIs(10));
  EXPECT_EQ(trials("t").back().plan, "plan 20");
  EXPECT_THAT(trials("u"), SizeIs(3));
  EXPECT_EQ(forget(newest(10), 100).trials, 0);
  EXPECT_EQ(forget(newest(0), 100).trials, 13);
}

TEST_P(StoreTrialsTest, A_plan_that_was_forgotten_comes_again_with_its_next_trial) {
  const SessionId session = begin();
  const std::string plan = "a.cc:1=1s";
  record_all(session, {trial(passing_run("t", 1), "candidate", plan)});
  EXPECT_EQ(forget(young(50s), 100).trials, 1);
  record_all(session, {trial(passing_run("t", 90), "candidate", plan)});
  ASSERT_THAT(trials("t"), SizeIs(1));
  EXPECT_EQ(trials("t")[0].plan, plan);
}

TEST_P(StoreTrialsTest, Forgetting_what_is_not_named_keeps_them) {
  const SessionId session = begin();
  record_all(session, {trial(passing_run("t", 1), "dose"), passing_run("t", 2)});
  const RetentionCount gone = forget({.passing_runs = 1s, .failing_runs = 1s, .outputs = 1s}, 100);
  EXPECT_EQ(gone.runs, 1);
  EXPECT_EQ(gone.trials, 0);
  EXPECT_THAT(trials("t"), SizeIs(1));
}

TEST_P(StoreTrialsTest, Hostile_plans_are_kept_byte_by_byte) {
  const SessionId session = begin();
  const std::string hostile = std::string("a\xff\x1b[31m'; --\n") + std::string(3000, 'x');
  record_all(session, {trial(passing_run("t", 1), "look \xfe", hostile)});
  ASSERT_THAT(trials("t", "look \xfe"), SizeIs(1));
  EXPECT_EQ(trials("t")[0].plan, hostile);
}

TEST_P(StoreTrialsTest, Are_visited_behind_the_runs_of_their_session) {
  SessionRecord first = session_of("first", ""), second = session_of("second", "");
  second.started = at_second(50);
  const SessionId later = begin(second), session = begin(first);
  record_all(later, {trial(passing_run("t", 51), "dose", "a.cc:1=1s")});
  record_all(session, {trial(failing_run("t", 1), "candidate", "a.cc:1=2s"), passing_run("t", 2),
                       trial(passing_run("t", 3), "baseline")});
  std::vector<std::string> lines;
  ASSERT_TRUE(store_->visit({.session =
                                 [&](const SessionRecord& one) {
                                   lines.push_back(one.uuid);
                                   return Result<void>();
                                 },
                             .run =
                                 [&](const RunRecord& run) {
                                   lines.push_back(fmt::format("{} {} {} {}", seconds(run.started),
                                                               run.purpose, run.plan,
                                                               run.signature));
                                   return Result<void>();
                                 }}));
  EXPECT_THAT(lines, ElementsAre("first", "2   ", "1 candidate a.cc:1=2s 00000000000000aa",
                                 "3 baseline  ", "second", "51 dose a.cc:1=1s "));
}

}  // namespace
}  // namespace unflake
