#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/store_fixture.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

RunRecord attempt(int number, RunRecord run, Duration duration = 5ms) {
  run.attempt = number;
  run.duration = duration;
  return run;
}

class StoreFlakyTest : public StoreFixture {
 protected:
  static SessionRecord session_of(const std::string& build, const std::string& commit,
                                  bool dirty = false, int64_t second = 0) {
    SessionRecord session = session_of_commit(commit);
    session.started = at_second(second);
    session.surroundings.build = build;
    session.surroundings.dirty = dirty;
    return session;
  }

  // A session of its own, from its beginning to its end.
  SessionId run_session(const SessionRecord& record, const std::vector<RunRecord>& runs) {
    const SessionId session = begin(record);
    record_all(session, runs);
    end(session);
    return session;
  }

  std::vector<std::string> flaky_tests(const Window& window = {}) {
    std::vector<std::string> names;
    for (const FlakyFailure& failure : flaky(window)) names.push_back(failure.test.name);
    return names;
  }
};

UNFLAKE_ON_EVERY_BACKEND(StoreFlakyTest);

TEST_P(StoreFlakyTest, A_test_that_passes_when_it_is_tried_again_is_flaky) {
  run_session(session_of("b", "c1"), {attempt(1, failing_run("t", 0)),
                                      attempt(2, passing_run("t", 1)), passing_run("solid", 2)});
  const auto failures = flaky();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].test.name, "t");
  EXPECT_EQ(failures[0].signature, "00000000000000aa");
  EXPECT_EQ(failures[0].failure, *failing_run("t", 0).failure);
  EXPECT_EQ(failures[0].outcome, OutcomeKind::fail);
  EXPECT_EQ(failures[0].runs, 1);
  EXPECT_EQ(failures[0].builds, 1);
  EXPECT_EQ(failures[0].suppressed_builds, 0);
  EXPECT_EQ(failures[0].first, at_second(0));
  EXPECT_EQ(failures[0].first_commit, "c1");
}

TEST_P(StoreFlakyTest, A_test_that_always_fails_is_broken_and_not_flaky) {
  run_session(session_of("b", "c1"),
              {attempt(1, failing_run("t", 0)), attempt(2, failing_run("t", 1))});
  run_session(session_of("b2", "c2"), {attempt(1, failing_run("t", 10))});
  EXPECT_TRUE(flaky().empty());
  EXPECT_EQ(prevalence().failed_builds, 2);
  EXPECT_EQ(prevalence().flaky_builds, 0);
}

TEST_P(StoreFlakyTest, What_was_not_built_at_first_is_not_flaky) {
  RunRecord not_built = failing_run("t", 0);
  not_built.failure->kind = FailureKind::not_started;
  not_built.signature = "00000000000000cc";
  run_session(session_of("b", "c1"), {not_built});
  run_session(session_of("b", "c1"), {passing_run("t", 1)});
  EXPECT_TRUE(flaky().empty());
  EXPECT_EQ(prevalence().failed_builds, 1);
  EXPECT_EQ(prevalence().flaky_builds, 0);
  EXPECT_EQ(prevalence().flaky_tests, 0);
}

TEST_P(StoreFlakyTest, Local_sessions_tell_of_tests_and_are_no_builds) {
  run_session(session_of("local:1", "c1"),
              {attempt(1, failing_run("t", 0)), attempt(2, passing_run("t", 1))});
  EXPECT_EQ(prevalence().builds, 0);
  EXPECT_EQ(prevalence().failed_builds, 0);
  EXPECT_EQ(prevalence().runs, 2);
  EXPECT_EQ(prevalence().flaky_tests, 1);
  EXPECT_EQ(prevalence().flaky_builds, 0);
  EXPECT_EQ(prevalence().flaky_failures, 0);
  ASSERT_EQ(flaky().size(), 1u);
  EXPECT_EQ(flaky()[0].runs, 1);
  EXPECT_EQ(flaky()[0].builds, 0);
  run_session(session_of("b", "c1"), {passing_run("t", 5)});
  EXPECT_EQ(prevalence().builds, 1);
  EXPECT_EQ(flaky()[0].builds, 0);
}

TEST_P(StoreFlakyTest, A_pass_in_another_session_of_the_build_makes_a_failure_flaky) {
  for (const bool pass_first : {false, true}) {
    const std::string build = pass_first ? "one" : "two", name = pass_first ? "a" : "b";
    const auto pass = [&] { run_session(session_of(build, ""), {passing_run(name, 0)}); };
    if (pass_first) pass();
    run_session(session_of(build, ""), {failing_run(name, 1)});
    if (!pass_first) pass();
  }
  EXPECT_THAT(flaky_tests(), ElementsAre("a", "b"));
}

TEST_P(StoreFlakyTest, A_pass_on_the_same_clean_commit_makes_a_failure_flaky) {
  run_session(session_of("one", "c1"), {failing_run("t", 0)});
  EXPECT_TRUE(flaky().empty());
  run_session(session_of("two", "c1"), {passing_run("t", 1)});
  EXPECT_THAT(flaky_tests(), ElementsAre("t"));
  EXPECT_EQ(flaky()[0].builds, 1);
}

TEST_P(StoreFlakyTest, A_pass_of_runs_that_have_moved_on_counts_as_well) {
  run_session(session_of("one", "c1"), {passing_run("t", 0), failing_run("u", 0)});
  settle();
  run_session(session_of("two", "c1"), {failing_run("t", 1), passing_run("u", 1)});
  EXPECT_THAT(flaky_tests(), ElementsAre("t", "u"));
}

TEST_P(StoreFlakyTest, A_changed_work_tree_proves_nothing_about_its_commit) {
  run_session(session_of("one", "c1", true), {failing_run("t", 0), passing_run("u", 0)});
  run_session(session_of("two", "c1"), {passing_run("t", 1), failing_run("u", 1)});
  run_session(session_of("three", "c1", true), {passing_run("t", 2)});
  EXPECT_TRUE(flaky().empty());
}

TEST_P(StoreFlakyTest, Sessions_without_a_commit_are_not_of_the_same_code) {
  run_session(session_of("", ""), {failing_run("t", 0)});
  run_session(session_of("", ""), {passing_run("t", 1)});
  EXPECT_TRUE(flaky().empty());
}

TEST_P(StoreFlakyTest, Another_project_proves_nothing) {
  run_session(session_of("b", "c1"), {failing_run("t", 0)});
  const auto other = open_project("other");
  const auto session = other->begin_session(session_of("b", "c1"));
  ASSERT_TRUE(session);
  ASSERT_TRUE(other->record(*session, passing_run("t", 1)));
  ASSERT_TRUE(other->end_session(*session));
  EXPECT_TRUE(flaky().empty());
  EXPECT_TRUE(other->lifecycle().flaky_failures({}, 10)->empty());
}

TEST_P(StoreFlakyTest, Runs_under_a_plan_prove_nothing) {
  RunRecord delayed_failure = failing_run("t", 0), delayed_pass = passing_run("u", 0);
  delayed_failure.plan = delayed_pass.plan = "plan";
  run_session(session_of("b", "c1"),
              {delayed_failure, passing_run("t", 1), delayed_pass, failing_run("u", 1)});
  EXPECT_TRUE(flaky().empty());
  EXPECT_EQ(prevalence().runs, 2);
}

TEST_P(StoreFlakyTest, Skipping_is_no_passing) {
  RunRecord skipped = passing_run("t", 1);
  skipped.outcome = OutcomeKind::skipped;
  run_session(session_of("b", "c1"), {failing_run("t", 0), skipped});
  EXPECT_TRUE(flaky().empty());
}

TEST_P(StoreFlakyTest, The_order_in_which_runs_arrive_does_not_matter) {
  const std::vector<RunRecord> runs = {
      attempt(1, failing_run("t", 0), 10ms), attempt(2, failing_run("t", 1, "bb"), 20ms),
      attempt(3, passing_run("t", 2), 40ms), attempt(4, passing_run("t", 3), 80ms)};
  std::vector<size_t> order = {0, 1, 2, 3};
  int64_t second = 0;
  do {
    const SessionId session = begin(session_of("", "", false, second++));
    for (const size_t i : order) {
      record_all(session, {runs[i]});
      if (i == 2 && order[0] == 1) settle();
    }
    end(session);
  } while (std::next_permutation(order.begin(), order.end()));
  const auto failures = flaky();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].signature, "00000000000000aa");
  EXPECT_EQ(failures[0].builds, 24);
  EXPECT_EQ(failures[0].runs, 24);
  EXPECT_EQ(failures[0].wasted, 24 * 10ms);
  EXPECT_EQ(failures[1].wasted, 24 * (20ms + 40ms));
}

TEST_P(StoreFlakyTest, Runs_that_were_recorded_one_by_one_count_the_same) {
  const SessionId session = begin(session_of("b", "c1"));
  record(session, attempt(1, failing_run("t", 0), 10ms));
  record(session, attempt(2, passing_run("t", 1), 20ms));
  record(session, attempt(3, passing_run("t", 2), 40ms));
  end(session);
  ASSERT_EQ(flaky().size(), 1u);
  EXPECT_EQ(flaky()[0].wasted, 30ms);
  EXPECT_EQ(prevalence().runs, 3);
}

TEST_P(StoreFlakyTest, Tells_the_ones_first_that_hit_most_builds) {
  for (int build = 0; build < 3; ++build) {
    std::vector<RunRecord> runs = {
        failing_run("often", 10 * build), passing_run("often", 10 * build + 1),
        failing_run("once", 0, "bb"), failing_run("once", 1, "bb"), passing_run("once", 2)};
    if (build > 0) runs.resize(2);
    run_session(session_of("b" + std::to_string(build), "c" + std::to_string(build)), runs);
  }
  const auto failures = flaky();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].test.name, "often");
  EXPECT_EQ(failures[0].builds, 3);
  EXPECT_EQ(failures[0].first, at_second(0));
  EXPECT_EQ(failures[0].last, at_second(20));
  EXPECT_EQ(failures[0].first_commit, "c0");
  EXPECT_EQ(failures[0].last_commit, "c2");
  EXPECT_EQ(failures[1].runs, 2);
  EXPECT_EQ(flaky({}, 1).size(), 1u);
  EXPECT_EQ(flaky({}, 1)[0].test.name, "often");
  EXPECT_TRUE(flaky({}, 0).empty());
}

TEST_P(StoreFlakyTest, Two_sessions_of_a_build_are_one_build) {
  for (int shard = 0; shard < 2; ++shard)
    run_session(session_of("b", ""),
                {failing_run("t", 2 * shard), passing_run("t", 2 * shard + 1)});
  ASSERT_EQ(flaky().size(), 1u);
  EXPECT_EQ(flaky()[0].builds, 1);
  EXPECT_EQ(flaky()[0].runs, 2);
  EXPECT_EQ(prevalence().builds, 1);
  EXPECT_EQ(prevalence().flaky_failures, 1);
}

TEST_P(StoreFlakyTest, A_window_has_its_beginning_and_not_its_end) {
  run_session(session_of("b", "", false, 100), {failing_run("t", 100), passing_run("t", 101)});
  EXPECT_EQ(flaky({at_second(100), at_second(101)}).size(), 1u);
  EXPECT_EQ(prevalence({at_second(100), at_second(101)}).builds, 1);
  EXPECT_TRUE(flaky({at_second(99), at_second(100)}).empty());
  EXPECT_EQ(prevalence({at_second(99), at_second(100)}).builds, 0);
  EXPECT_TRUE(flaky({at_second(101), at_second(200)}).empty());
}

TEST_P(StoreFlakyTest, Says_which_builds_quarantine_kept_from_failing) {
  for (int build = 0; build < 3; ++build) {
    const SessionId session = begin(session_of("b" + std::to_string(build), ""));
    record_all(session, {failing_run("t", 0), failing_run("t", 1, "bb"), passing_run("t", 2)});
    if (build > 0) suppress(session, "t", "00000000000000aa");
    if (build > 1) suppress(session, "t", "bb");
    if (build > 1) suppress(session, "t", "bb");
    end(session);
  }
  const auto failures = flaky();
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].suppressed_builds, 2);
  EXPECT_EQ(failures[1].suppressed_builds, 1);
  EXPECT_EQ(prevalence().flaky_failures, 3);
  EXPECT_EQ(prevalence().suppressed, 1) << "in the second build another signature failed it";
}

TEST_P(StoreFlakyTest, Counts_the_builds_in_which_a_failure_was_suppressed_flaky_or_not) {
  const std::string known = "00000000000000aa";
  for (const std::string build : {"1", "1", "2", "3", "local:4"}) {
    const SessionId session = begin(session_of(build, ""));
    record_all(session, {failing_run("t", 0, known), failing_run("other", 1, "bb")});
    if (build != "3") suppress(session, "t", known);
    end(session);
  }
  EXPECT_TRUE(flaky().empty()) << "it never passed";
  const auto count = [&](const char* test, const std::string& signature, const Window& window) {
    return *store_->lifecycle().count_suppressed_builds({"suite", test}, signature, window);
  };
  EXPECT_EQ(count("t", known, {}), 2);
  EXPECT_EQ(count("t", "bb", {}), 0);
  EXPECT_EQ(count("other", known, {}), 0);
  EXPECT_EQ(count("t", known, {at_second(0), at_second(1)}), 2);
  EXPECT_EQ(count("t", known, {at_second(1), TimePoint::max()}), 0);
}

TEST_P(StoreFlakyTest, A_suppression_may_come_before_the_run_that_it_is_about) {
  const SessionId session = begin(session_of("b", ""));
  suppress(session, "t", "00000000000000aa");
  record_all(session, {failing_run("t", 0), passing_run("t", 1)});
  end(session);
  ASSERT_EQ(flaky().size(), 1u);
  EXPECT_EQ(flaky()[0].suppressed_builds, 1);
  EXPECT_EQ(flaky()[0].failure, *failing_run("t", 0).failure);
}

TEST_P(StoreFlakyTest, Prevalence_tells_what_flaky_tests_did_to_builds) {
  run_session(
      session_of("flaky", "c1", false, 0),
      {attempt(1, failing_run("t", 1)), attempt(2, passing_run("t", 2)), passing_run("u", 3)});
  run_session(session_of("broken", "c2", false, 1000),
              {failing_run("u", 1001), passing_run("t", 1003)});
  run_session(session_of("green", "c3", false, 2000),
              {passing_run("u", 2001), passing_run("v", 2007)});
  for (const bool settled : {false, true}) {
    if (settled) settle();
    const Prevalence sums = prevalence();
    EXPECT_EQ(sums.tests, 3);
    EXPECT_EQ(sums.builds, 3);
    EXPECT_EQ(sums.failed_builds, 2);
    EXPECT_EQ(sums.runs, 7);
    EXPECT_EQ(sums.median_build, 3s + 5ms);
    EXPECT_EQ(sums.flaky_tests, 1);
    EXPECT_EQ(sums.flaky_failures, 1);
    EXPECT_EQ(sums.flaky_builds, 1);
    EXPECT_EQ(sums.suppressed, 0);
    EXPECT_EQ(prevalence({at_second(0), at_second(1000)}).tests, 2);
    EXPECT_EQ(prevalence({at_second(1000), at_second(1002)}).tests, 1);
    EXPECT_EQ(prevalence({at_second(2000), at_second(3000)}).tests, 2);
  }
}

TEST_P(StoreFlakyTest, A_build_takes_from_its_first_start_to_its_last_end) {
  run_session(session_of("b", "", false, 0), {passing_run("t", 1, 2s)});
  run_session(session_of("b", "", false, 10), {passing_run("t", 11, 4s)});
  EXPECT_EQ(prevalence().median_build, 15s);
}

TEST_P(StoreFlakyTest, Prevalence_is_of_all_projects_by_name) {
  for (const char* name : {"zebra", "ant"}) {
    const auto project = open_project(name);
    const auto session = project->begin_session(session_of("b", "c"));
    ASSERT_TRUE(session);
    ASSERT_TRUE(project->record(*session, passing_run("t", 0)));
    ASSERT_TRUE(project->end_session(*session));
  }
  const auto rows = store_->lifecycle().prevalence({});
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].project, "ant");
  EXPECT_EQ((*rows)[1].project, "zebra");
  EXPECT_EQ((*rows)[1].tests, 1);
}

}  // namespace
}  // namespace unflake
