#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/store_fixture.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class StoreLifecycleTest : public StoreFixture {
 protected:
  static LifecycleStep step(LifecycleStep::Kind kind, int64_t second) {
    return {.kind = kind,
            .test = {"suite", "t"},
            .signature = "00000000000000aa",
            .at = at_second(second),
            .commit = "c0ffee",
            .reason = "times out \xff",
            .owner = "@team",
            .url = "https://example.com/1"};
  }

  RetentionCount forget(const Retention& retention, int64_t now) {
    const auto forgotten = store_->forget(retention, at_second(now));
    EXPECT_TRUE(forgotten) << to_string(forgotten.error());
    return forgotten ? *forgotten : RetentionCount{};
  }
};

UNFLAKE_ON_EVERY_BACKEND(StoreLifecycleTest);

TEST_P(StoreLifecycleTest, Tells_what_was_noted_in_order_of_time) {
  using Kind = LifecycleStep::Kind;
  for (const Kind kind : {Kind::report_reopened, Kind::report_closed, Kind::report_opened,
                          Kind::expired, Kind::lifted, Kind::quarantined})
    ASSERT_TRUE(store_->lifecycle().note(step(kind, static_cast<int64_t>(kind))));
  const auto steps = *store_->lifecycle().steps({});
  ASSERT_EQ(steps.size(), 6u);
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].kind, static_cast<Kind>(i));
  EXPECT_EQ(steps[3].test.name, "t");
  EXPECT_EQ(steps[3].signature, "00000000000000aa");
  EXPECT_EQ(steps[3].at, at_second(3));
  EXPECT_EQ(steps[3].commit, "c0ffee");
  EXPECT_EQ(steps[3].reason, "times out \xff");
  EXPECT_EQ(steps[3].owner, "@team");
  EXPECT_EQ(steps[3].url, "https://example.com/1");
}

TEST_P(StoreLifecycleTest, Tells_an_event_once_that_was_noted_twice) {
  const auto lifted = step(LifecycleStep::Kind::lifted, 5);
  ASSERT_TRUE(store_->lifecycle().note(lifted));
  ASSERT_TRUE(store_->lifecycle().note(lifted));
  EXPECT_EQ(store_->lifecycle().steps({})->size(), 1u);
}

TEST_P(StoreLifecycleTest, Tells_events_of_the_window_and_the_project_only) {
  ASSERT_TRUE(store_->lifecycle().note(step(LifecycleStep::Kind::lifted, 5)));
  EXPECT_EQ(store_->lifecycle().steps({at_second(5), at_second(6)})->size(), 1u);
  EXPECT_TRUE(store_->lifecycle().steps({at_second(4), at_second(5)})->empty());
  EXPECT_TRUE(open_project("other")->lifecycle().steps({})->empty());
}

TEST_P(StoreLifecycleTest, A_test_of_which_only_an_event_is_known_has_no_summary) {
  ASSERT_TRUE(store_->lifecycle().note(step(LifecycleStep::Kind::lifted, 5)));
  EXPECT_TRUE(store_->summarise("*", 10)->empty());
  EXPECT_FALSE(store_->summarise_test({"suite", "t"})->has_value());
}

TEST_P(StoreLifecycleTest, Saves_a_cause_and_replaces_it) {
  CauseRecord cause{.id = 0,
                    .title = "a race",
                    .signatures = {"bb", "aa"},
                    .state = CauseRecord::State::open,
                    .opened = at_second(1),
                    .closed = std::nullopt,
                    .reopened = 0,
                    .category = "",
                    .url = ""};
  const auto id = store_->lifecycle().save_cause(cause);
  ASSERT_TRUE(id);
  EXPECT_EQ((*store_->lifecycle().causes())[0].closed, std::nullopt);
  cause.id = *id;
  cause.signatures = {"aa", "cc"};
  cause.state = CauseRecord::State::closed;
  cause.closed = at_second(2);
  cause.reopened = 3;
  cause.category = "order";
  cause.url = "https://example.com/2";
  EXPECT_EQ(*store_->lifecycle().save_cause(cause), *id);
  const auto causes = *store_->lifecycle().causes();
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].id, *id);
  EXPECT_EQ(causes[0].title, "a race");
  EXPECT_THAT(causes[0].signatures, ElementsAre("aa", "cc"));
  EXPECT_EQ(causes[0].state, CauseRecord::State::closed);
  EXPECT_EQ(causes[0].opened, at_second(1));
  EXPECT_EQ(causes[0].closed, at_second(2));
  EXPECT_EQ(causes[0].reopened, 3);
  EXPECT_EQ(causes[0].category, "order");
  EXPECT_EQ(causes[0].url, "https://example.com/2");
}

TEST_P(StoreLifecycleTest, Refuses_to_replace_a_cause_that_is_not_there) {
  CauseRecord cause;
  cause.id = 77;
  EXPECT_FALSE(store_->lifecycle().save_cause(cause));
  cause.id = 0;
  const auto id = store_->lifecycle().save_cause(cause);
  ASSERT_TRUE(id);
  cause.id = *id;
  EXPECT_FALSE(open_project("other")->lifecycle().save_cause(cause));
  EXPECT_TRUE(open_project("other")->lifecycle().causes()->empty());
}

TEST_P(StoreLifecycleTest, Forgets_old_runs_and_keeps_the_sums) {
  const SessionId session = begin();
  std::vector<RunRecord> runs;
  for (int second = 0; second < 100; ++second)
    runs.push_back(second % 10 == 0 ? failing_run("t", second) : passing_run("t", second));
  record_all(session, runs);
  end(session);
  const RetentionCount count =
      forget({.passing_runs = 50s, .failing_runs = 80s, .outputs = 60s}, 100);
  EXPECT_EQ(count.runs, 45 + 2);
  EXPECT_EQ(count.outputs, 4);
  EXPECT_EQ(store_->recent_runs({"suite", "t"}, 1000)->size(), 53u);
  EXPECT_EQ(summary("t").passes, 90);
  EXPECT_EQ(summary("t").failures, 10);
  EXPECT_EQ(summary("t").first, at_second(0));
  EXPECT_EQ(prevalence().runs, 100);
  EXPECT_EQ(forget({.passing_runs = 50s, .failing_runs = 80s, .outputs = 60s}, 100).runs, 0);
}

TEST_P(StoreLifecycleTest, A_forgotten_run_that_is_delivered_again_is_not_counted_again) {
  const SessionId session = begin();
  const std::vector<RunRecord> runs = {passing_run("t", 0), failing_run("t", 1),
                                       passing_run("t", 60)};
  record_all(session, runs);
  forget({.passing_runs = 50s, .failing_runs = 50s, .outputs = std::nullopt}, 100);
  record_all(session, runs);
  for (const RunRecord& run : runs) record(session, run);
  end(session);
  EXPECT_EQ(summary("t").passes, 2);
  EXPECT_EQ(summary("t").failures, 1);
  EXPECT_EQ(store_->recent_runs({"suite", "t"}, 10)->size(), 1u);
  ASSERT_EQ(flaky().size(), 1u);
  EXPECT_EQ(flaky()[0].runs, 1);
}

TEST_P(StoreLifecycleTest, Forgets_nothing_without_a_policy_and_nothing_of_other_projects) {
  const SessionId session = begin();
  record_all(session, {passing_run("t", 0), failing_run("t", 1)});
  EXPECT_EQ(forget({}, 1'000'000).runs, 0);
  const auto other = open_project("other");
  EXPECT_EQ(
      other->forget({.passing_runs = 1s, .failing_runs = 1s, .outputs = 1s}, at_second(100))->runs,
      0);
  EXPECT_EQ(store_->recent_runs({"suite", "t"}, 10)->size(), 2u);
  record_all(session, {passing_run("t", 2)});
  EXPECT_EQ(summary("t").passes, 2) << "its horizon is its own";
}

TEST_P(StoreLifecycleTest, Tells_since_when_nothing_was_forgotten) {
  EXPECT_EQ(*store_->forgotten_before(), std::nullopt);
  forget({.passing_runs = std::nullopt, .failing_runs = std::nullopt, .outputs = 10s}, 100);
  EXPECT_EQ(*store_->forgotten_before(), std::nullopt) << "outputs are no evidence";
  forget({.passing_runs = 50s, .failing_runs = 80s, .outputs = std::nullopt}, 100);
  EXPECT_EQ(*store_->forgotten_before(), at_second(50));
  forget({.passing_runs = std::nullopt, .failing_runs = 80s, .outputs = std::nullopt}, 100);
  EXPECT_EQ(*store_->forgotten_before(), at_second(50)) << "it never goes back";
  EXPECT_EQ(*open_project("other")->forgotten_before(), std::nullopt);
}

class VisitTest : public StoreFixture {
 protected:
  // What a visitor is told, as lines.
  static std::vector<std::string> told(Store& store) {
    std::vector<std::string> lines;
    const auto visited = store.visit(
        {.session = [&](const SessionRecord& session) -> Result<void> {
           lines.push_back(fmt::format("session {} {} {}", session.uuid, session.surroundings.build,
                                       session.surroundings.commit));
           return {};
         },
         .run = [&](const RunRecord& run) -> Result<void> {
           lines.push_back(fmt::format(
               "{} {} {}", run.test.name,
               std::chrono::duration_cast<std::chrono::seconds>(run.started - at_second(0)).count(),
               run.signature));
           return {};
         }});
    EXPECT_TRUE(visited) << to_string(visited.error());
    return lines;
  }

  static SessionRecord named(const std::string& uuid, int64_t second) {
    SessionRecord session = session_of_commit("c-" + uuid);
    session.uuid = uuid;
    session.started = at_second(second);
    session.seed = UINT64_MAX - 1;
    session.surroundings.build = "build of " + uuid;
    return session;
  }
};

UNFLAKE_ON_EVERY_BACKEND(VisitTest);

TEST_P(VisitTest, Tells_every_run_behind_its_session_the_oldest_first) {
  const SessionId late = begin(named("late", 100)), early = begin(named("early", 0));
  record_all(late, {passing_run("b", 102), passing_run("a", 101)});
  record_all(early, {failing_run("a", 1), passing_run("a", 2)});
  settle();
  record(early, passing_run("fresh", 3));
  record_all(late, {failing_run("c", 103)});
  EXPECT_THAT(told(*store_),
              ElementsAre("session early build of early c-early", "a 1 00000000000000aa", "a 2 ",
                          "fresh 3 ", "session late build of late c-late", "a 101 ", "b 102 ",
                          "c 103 00000000000000aa"));
  EXPECT_TRUE(told(*open_project("other")).empty());
}

TEST_P(VisitTest, Tells_what_was_suppressed_behind_the_runs) {
  const SessionId one = begin(named("one", 0)), two = begin(named("two", 1));
  record_all(one, {failing_run("a", 1), passing_run("a", 2)});
  record_all(two, {passing_run("a", 3)});
  ASSERT_TRUE(store_->suppress(one, {"suite", "a"}, "00000000000000aa"));
  end(one);
  end(two);
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) {
    lines.push_back(line);
    return Result<void>();
  };
  ASSERT_TRUE(store_->visit(
      {.session = [&](const SessionRecord& session) { return add(session.uuid); },
       .run = [&](const RunRecord& run) { return add(std::string(to_string(run.outcome))); },
       .suppression =
           [&](const TestId& test, const std::string& signature) {
             return add(to_string(test) + " " + signature);
           }}));
  EXPECT_THAT(lines, ElementsAre("one", "fail", "pass", "suite:a 00000000000000aa", "two", "pass"));
}

TEST_P(VisitTest, Ends_with_the_first_error) {
  const SessionId session = begin(named("one", 0));
  record_all(session, {passing_run("a", 0), passing_run("a", 1)});
  int runs = 0;
  const auto visited =
      store_->visit({.session = [](const SessionRecord&) { return Result<void>(); },
                     .run = [&](const RunRecord&) -> Result<void> {
                       ++runs;
                       return usage_error("enough");
                     }});
  ASSERT_FALSE(visited);
  EXPECT_EQ(visited.error().what, "enough");
  EXPECT_EQ(runs, 1);
}

TEST_P(VisitTest, What_is_recorded_elsewhere_says_the_same) {
  for (int build = 0; build < 3; ++build) {
    const SessionId session = begin(named(std::to_string(build), 100 * build));
    RunRecord planned = failing_run("u", 100 * build);
    planned.plan = "plan";
    record_all(session, {failing_run("t", 100 * build, fmt::format("sig {}", build)),
                         passing_run("t", 100 * build + 1, 7ms), planned});
    end(session);
  }
  const auto other = GetParam().make();
  auto copy = open_store({other->url()});
  ASSERT_TRUE(copy);
  SessionId session = 0;
  const auto visited = store_->visit({.session = [&](const SessionRecord& record) -> Result<void> {
                                        const auto begun = (*copy)->begin_session(record);
                                        if (!begun) return begun.error();
                                        session = *begun;
                                        return {};
                                      },
                                      .run =
                                          [&](const RunRecord& run) {
                                            return (*copy)->record_all(session, {&run, 1});
                                          }});
  ASSERT_TRUE(visited) << to_string(visited.error());
  EXPECT_EQ(told(*store_), told(**copy));
  const TestSummary one = summary("t"), two = **(*copy)->summarise_test({"suite", "t"});
  EXPECT_EQ(one.passes, two.passes);
  EXPECT_EQ(one.pass_durations.max, two.pass_durations.max);
  ASSERT_EQ(one.signatures.size(), two.signatures.size());
  EXPECT_EQ(one.signatures[2].failure, two.signatures[2].failure);
  EXPECT_EQ(one.signatures[2].first_commit, two.signatures[2].first_commit);
  EXPECT_EQ(flaky().size(), (*copy)->lifecycle().flaky_failures({}, 100)->size());
  EXPECT_EQ(*store_->latest_output({"suite", "t"}, "sig 1"),
            *(*copy)->latest_output({"suite", "t"}, "sig 1"));
  EXPECT_EQ(prevalence().runs, (*(*copy)->lifecycle().prevalence({}))[0].runs);
}

}  // namespace
}  // namespace unflake
