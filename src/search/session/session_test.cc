#include "search/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <set>

#include "support/mock_executor.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Role = PlannedTest::Role;

std::shared_ptr<Test> named(const std::string& name) {
  auto test = std::make_shared<Test>();
  test->id = {"suite", name};
  return test;
}

std::vector<PlannedTest> plan_of(const std::vector<std::shared_ptr<const Test>>& tests) {
  return with_fixtures(tests, tests);
}

Outcome passes(Duration duration = 10ms) {
  Outcome outcome;
  outcome.duration = duration;
  return outcome;
}

Outcome fails(Duration duration = 10ms) {
  Outcome outcome = passes(duration);
  outcome.kind = OutcomeKind::fail;
  return outcome;
}

struct Recorder : Consumer {
  void on(const Event& event) override {
    if (const auto* run = std::get_if<RunEnded>(&event)) runs.push_back(*run), --begun;
    if (std::holds_alternative<RunStarted>(event)) most_begun = std::max(most_begun, ++begun);
    if (const auto* test = std::get_if<TestEnded>(&event)) ended[test->test->id.name] = *test;
    if (const auto* note = std::get_if<Note>(&event)) notes.push_back(note->text);
    if (const auto* end = std::get_if<SessionEnded>(&event)) session = *end;
    if (std::holds_alternative<StatusRequested>(event)) ++status_requests;
    if (const auto* slow = std::get_if<RunSlow>(&event)) slow_runs.push_back(*slow);
  }
  std::vector<RunEnded> runs;
  std::map<std::string, TestEnded> ended;
  std::vector<std::string> notes;
  std::optional<SessionEnded> session;
  std::vector<RunSlow> slow_runs;
  int status_requests = 0;
  int begun = 0, most_begun = 0;
};

struct World {
  explicit World(MockExecutor::Truth truth, size_t slots = 1) : executor(truth, slots) {
    events.add(recorder);
  }
  Result<SessionEnded> run(const std::vector<PlannedTest>& tests,
                           const SessionPolicy& policy = {}) {
    return run_session(tests, policy, executor, events);
  }
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    for (const Experiment& experiment : executor.started())
      names.push_back(experiment.tests.last().id.name);
    return names;
  }
  MockExecutor executor;
  EventStream events;
  Recorder recorder;
};

MockExecutor::Truth always(Outcome outcome) {
  return [outcome](const Experiment&, int) { return outcome; };
}

TEST(Session, Runs_every_test_once) {
  World world(always(passes()));
  const auto ended = world.run(plan_of({named("a"), named("b")}));
  EXPECT_EQ(ended->passed, 2);
  EXPECT_THAT(world.order(), ElementsAre("a", "b"));
}

TEST(Session, Repeats_in_rounds_and_calls_a_mixed_test_flaky) {
  World world([](const Experiment& experiment, int nth) {
    return experiment.tests.last().id.name == "b" && nth == 4 ? fails() : passes();
  });
  SessionPolicy policy;
  policy.repeat = 3;
  const auto ended = world.run(plan_of({named("a"), named("b")}), policy);
  EXPECT_THAT(world.order(), ElementsAre("a", "b", "a", "b", "a", "b"));
  EXPECT_EQ(ended->passed, 1);
  EXPECT_EQ(ended->flaky, 1);
  EXPECT_EQ(world.recorder.ended["b"].tally.failures, 1);
  EXPECT_EQ(world.recorder.ended["b"].tally.passes, 2);
}

TEST(Session, Retries_a_failing_test_at_once_and_keeps_every_attempt) {
  World world([](const Experiment& experiment, int nth) {
    return experiment.tests.last().id.name == "a" && nth <= 2 ? fails() : passes();
  });
  auto tests = plan_of({named("a"), named("b")});
  tests[0].retries = tests[1].retries = 2;
  const auto ended = world.run(tests);
  EXPECT_THAT(world.order(), ElementsAre("a", "a", "a", "b"));
  EXPECT_EQ(ended->flaky, 1);
  std::vector<int> attempts;
  for (const RunEnded& run : world.recorder.runs)
    if (run.test->id.name == "a") attempts.push_back(run.attempt);
  EXPECT_THAT(attempts, ElementsAre(1, 2, 3));
}

// What is not built stays so, however often it is asked for.
TEST(Session, Neither_repeats_nor_retries_what_cannot_be_started) {
  struct NotBuilt : MockExecutor {
    using MockExecutor::MockExecutor;
    Wakeup wait(std::optional<Duration> at_most) override {
      Wakeup wakeup = MockExecutor::wait(at_most);
      if (auto* finished = std::get_if<Finished>(&wakeup)) {
        finished->result.process.end = ProcessResult::End::not_started;
        finished->result.process.code = ENOENT;
      }
      return wakeup;
    }
  };
  for (const int repeat : {0, 1, 5}) {
    NotBuilt executor(always(fails()), 1);
    EventStream events;
    Recorder recorder;
    events.add(recorder);
    auto tests = plan_of({named("a")});
    tests[0].retries = 2;
    SessionPolicy policy;
    policy.repeat = repeat;
    if (repeat == 0) policy.duration = 1h;
    const auto ended = run_session(tests, policy, executor, events);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->failed, 1);
    EXPECT_EQ(recorder.runs.size(), 1u);
    EXPECT_THAT(recorder.ended["a"].reason, HasSubstr("not tried again"));
  }
}

TEST(Session, Gives_up_after_the_last_retry) {
  World world(always(fails()));
  auto tests = plan_of({named("a")});
  tests[0].retries = 2;
  const auto ended = world.run(tests);
  EXPECT_EQ(ended->failed, 1);
  EXPECT_EQ(ended->runs.failures, 3);
  EXPECT_FALSE(world.recorder.runs.back().will_retry);
}

Outcome reports(FailureKind kind) {
  Outcome outcome = fails();
  outcome.failures.resize(1);
  outcome.failures[0].kind = kind;
  return outcome;
}

TEST(Session, Does_not_try_again_what_a_sanitizer_reported) {
  for (const FailureKind kind :
       {FailureKind::address_sanitizer, FailureKind::thread_sanitizer,
        FailureKind::undefined_behaviour_sanitizer, FailureKind::memory_sanitizer,
        FailureKind::leak_sanitizer, FailureKind::valgrind}) {
    World world(always(reports(kind)));
    auto tests = plan_of({named("a"), named("b")});
    tests[0].retries = tests[1].retries = 1;
    SessionPolicy policy;
    policy.retry.sanitizer_reports = false;
    EXPECT_EQ(world.run(tests, policy)->runs.failures, 2);
    EXPECT_FALSE(world.recorder.runs[0].will_retry);
    EXPECT_THAT(world.recorder.ended["a"].reason, HasSubstr("proves a defect"));
    EXPECT_THAT(world.recorder.notes, ElementsAre(HasSubstr("sanitizer")));
  }
}

std::vector<PlannedTest> many(int count) {
  std::vector<std::shared_ptr<const Test>> tests;
  for (int i = 0; i < count; ++i) tests.push_back(named(std::to_string(i)));
  auto plan = plan_of(tests);
  for (PlannedTest& test : plan) test.retries = 1;
  return plan;
}

TEST(Session, Stops_trying_again_when_too_many_tests_fail) {
  World world(always(fails()));
  SessionPolicy policy;
  policy.retry.mass_failure = MassFailure{3, 0.2};
  const auto ended = world.run(many(10), policy);
  EXPECT_EQ(ended->failed, 10);
  EXPECT_EQ(ended->runs.failures, 12);  // the first two were tried again
  EXPECT_TRUE(ended->mass_failure);
  EXPECT_THAT(world.recorder.notes, ElementsAre(HasSubstr("3 of 3 tests failed at their first")));
  EXPECT_THAT(world.recorder.ended["9"].reason, HasSubstr("too many tests failed"));
}

TEST(Session, Goes_on_trying_again_while_few_of_many_tests_fail) {
  World world([](const Experiment& experiment, int) {
    return std::stoi(experiment.tests.last().id.name) % 10 == 9 ? fails() : passes();
  });
  SessionPolicy policy;
  policy.retry.mass_failure = MassFailure{3, 0.2};
  const auto ended = world.run(many(100), policy);
  EXPECT_EQ(ended->runs.failures, 20);
  EXPECT_FALSE(ended->mass_failure);
}

TEST(Session, Runs_some_tests_more_often_than_the_others) {
  World world(always(passes()));
  auto tests = plan_of({named("a"), named("b")});
  tests[1].repeat = 3;
  EXPECT_EQ(world.run(tests)->runs.passes, 4);
  EXPECT_THAT(world.order(), ElementsAre("a", "b", "b", "b"));
}

TEST(Session, Retries_each_of_many_rounds_whatever_runs_beside_it) {
  for (const bool serial : {false, true}) {
    for (const size_t slots : {1, 2, 4}) {
      auto test = named("a");
      test->serial = serial;
      World world(always(fails()), slots);
      world.executor.allow_queue();
      auto tests = plan_of({test});
      tests[0].retries = 2;
      SessionPolicy policy;
      policy.repeat = 5;
      EXPECT_EQ(world.run(tests, policy)->runs.failures, 15) << serial << " " << slots;
    }
  }
}

TEST(Session, Starts_nothing_when_the_time_is_over_in_the_middle_of_a_round) {
  World world(always(passes(1s)));
  SessionPolicy policy;
  policy.repeat = 0;
  policy.duration = 2s;
  const auto ended = world.run(plan_of({named("a"), named("b"), named("c"), named("d")}), policy);
  EXPECT_EQ(ended->elapsed, 2s);
  EXPECT_EQ(ended->passed, 2);
  EXPECT_EQ(ended->not_run, 2);
  EXPECT_EQ(world.recorder.ended["d"].reason, "the time was over");
}

TEST(Session, Leaves_out_a_disabled_setup_as_CTest_does) {
  auto setup = named("set up");
  setup->fixtures.setup = {"server"};
  setup->disabled = true;
  auto test = named("ping");
  test->fixtures.required = {"server"};
  World world(always(passes()));
  world.run(with_fixtures({test}, {setup, test})).value();
  EXPECT_THAT(world.order(), ElementsAre("ping"));
}

TEST(Session, Lets_a_setup_depend_on_an_ordinary_test) {
  auto setup = named("set up");
  setup->fixtures.setup = {"server"};
  setup->depends = {"build"};
  auto test = named("ping");
  test->fixtures.required = {"server"};
  auto build = named("build");
  World world(always(passes()));
  const auto ended = world.run(with_fixtures({test, build}, {setup, test, build}));
  EXPECT_EQ(ended->passed, 3);
  EXPECT_THAT(world.order(), ElementsAre("build", "set up", "ping"));
}

TEST(Session, Stops_repeating_a_test_at_its_first_failure) {
  World world([](const Experiment& experiment, int nth) {
    return experiment.tests.last().id.name == "a" && nth == 3 ? fails() : passes();
  });
  SessionPolicy policy;
  policy.repeat = 5;
  policy.until_fail = true;
  world.run(plan_of({named("a"), named("b")}), policy).value();
  EXPECT_EQ(world.recorder.ended["a"].tally.runs(), 2);
  EXPECT_EQ(world.recorder.ended["b"].tally.runs(), 5);
}

TEST(Session, Repeats_until_the_time_is_over) {
  World world(always(passes(10ms)));
  SessionPolicy policy;
  policy.repeat = 0;
  policy.duration = 95ms;
  const auto ended = world.run(plan_of({named("a")}), policy);
  EXPECT_EQ(ended->runs.passes, 10);
  EXPECT_EQ(ended->elapsed, 100ms);
}

TEST(Session, Shuffles_each_round_and_a_seed_repeats_the_order) {
  std::vector<std::shared_ptr<const unflake::Test>> tests;
  for (int i = 0; i < 20; ++i) tests.push_back(named(std::to_string(i)));
  SessionPolicy policy;
  policy.repeat = 2;
  policy.shuffle_seed = 7;
  World one(always(passes())), two(always(passes()));
  one.run(plan_of(tests), policy).value();
  two.run(plan_of(tests), policy).value();
  const auto order = one.order();
  EXPECT_EQ(order, two.order());
  const std::vector<std::string> first(order.begin(), order.begin() + 20);
  const std::vector<std::string> second(order.begin() + 20, order.end());
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 20u);
}

TEST(Session, Fills_the_slots_but_keeps_serial_tests_and_locks_apart) {
  auto serial = named("serial");
  serial->serial = true;
  auto locked = named("locked");
  locked->locks = {"port"};
  auto also_locked = named("also locked");
  also_locked->locks = {"port"};
  World world(always(passes()), 4);
  world.run(plan_of({serial, locked, also_locked, named("a"), named("b")})).value();
  EXPECT_EQ(world.executor.most_at_once(), 3u);  // one of the two locked ones, a and b
  EXPECT_THAT(world.order(), ElementsAre("serial", "locked", "a", "b", "also locked"));
}

TEST(Session, Gives_a_test_the_processors_that_it_asks_for) {
  auto wide = named("wide");
  wide->processors = 2;
  auto too_wide = named("too wide");
  too_wide->processors = 64;
  World world(always(passes()), 2);
  world.run(plan_of({wide, too_wide, named("a"), named("b")})).value();
  EXPECT_EQ(world.recorder.session->passed, 4);
  EXPECT_EQ(world.executor.most_at_once(), 2u);
}

TEST(Session, Sets_up_fixtures_first_and_cleans_up_last_whatever_was_selected) {
  auto database = named("start database");
  database->fixtures.setup = {"database"};
  database->fixtures.required = {"disk"};
  auto disk = named("make disk");
  disk->fixtures.setup = {"disk"};
  auto stop = named("stop database");
  stop->fixtures.cleanup = {"database"};
  auto query = named("query");
  query->fixtures.required = {"database"};
  const auto tests = with_fixtures({query}, {query, stop, database, disk, named("other")});
  World world(always(passes()), 4);
  SessionPolicy policy;
  policy.repeat = 2;
  world.run(tests, policy).value();
  EXPECT_THAT(world.order(),
              ElementsAre("make disk", "start database", "query", "query", "stop database"));
  EXPECT_TRUE(world.executor.started()[1].keep_leftovers);
  EXPECT_FALSE(world.executor.started()[2].keep_leftovers);
}

TEST(Session, Does_not_run_a_test_whose_fixture_failed_and_says_which) {
  auto setup = named("start server");
  setup->fixtures.setup = {"server"};
  auto cleanup = named("stop server");
  cleanup->fixtures.cleanup = {"server"};
  auto test = named("ping");
  test->fixtures.required = {"server"};
  World world([](const Experiment& experiment, int) {
    return experiment.tests.last().id.name == "start server" ? fails() : passes();
  });
  const auto ended = world.run(with_fixtures({test}, {setup, cleanup, test}));
  EXPECT_EQ(ended->not_run, 1);
  EXPECT_THAT(world.recorder.ended["ping"].reason, HasSubstr("suite:start server did not pass"));
  EXPECT_THAT(world.order(), ElementsAre("start server", "stop server"));
}

TEST(Session, Keeps_the_order_that_dependencies_ask_for) {
  auto late = named("late");
  late->depends = {"early", "not selected"};
  World world(always(passes()), 4);
  world.run(plan_of({late, named("early")})).value();
  EXPECT_THAT(world.order(), ElementsAre("early", "late"));
}

TEST(Session, Does_not_hang_on_tests_that_wait_for_each_other) {
  auto one = named("one");
  one->depends = {"two"};
  auto two = named("two");
  two->depends = {"one"};
  World world(always(passes()));
  const auto ended = world.run(plan_of({one, two, named("three")}));
  EXPECT_EQ(ended->passed, 1);
  EXPECT_EQ(ended->not_run, 2);
  EXPECT_THAT(world.recorder.ended["one"].reason, HasSubstr("wait for each other"));
}

TEST(Session, An_interrupt_keeps_what_was_found_and_drops_what_was_cut_short) {
  World world(always(passes()));
  world.executor.interrupt_after(2, Stopped{});
  SessionPolicy policy;
  policy.repeat = 100;
  const auto ended = world.run(plan_of({named("a"), named("b"), named("c")}), policy);
  EXPECT_TRUE(ended->interrupted);
  EXPECT_EQ(ended->runs.passes, 2);
  ASSERT_EQ(world.recorder.runs.size(), 3u);
  EXPECT_EQ(world.recorder.runs.back().result.process.end, ProcessResult::End::cancelled);
  EXPECT_EQ(world.recorder.ended["c"].verdict, Verdict::not_run);
  EXPECT_EQ(world.recorder.ended["c"].reason, "interrupted");
}

TEST(Session, Fail_fast_starts_nothing_after_a_failure) {
  World world(always(fails()));
  SessionPolicy policy;
  policy.fail_fast = true;
  const auto ended = world.run(plan_of({named("a"), named("b"), named("c")}), policy);
  EXPECT_EQ(ended->failed, 1);
  EXPECT_EQ(ended->not_run, 2);
}

TEST(Session, Queues_short_runs_behind_each_other_and_tells_them_in_order) {
  World world(always(passes(10ms)));
  world.executor.allow_queue();
  SessionPolicy policy;
  policy.repeat = 5;
  const auto ended = world.run(plan_of({named("a"), named("b")}), policy);
  EXPECT_EQ(ended->runs.passes, 10);
  EXPECT_EQ(ended->elapsed, 100ms);
  EXPECT_EQ(world.executor.most_at_once(), 1u);
  EXPECT_EQ(world.recorder.ended["a"].tally.passes, 5);
  EXPECT_EQ(world.recorder.most_begun, 1);
}

TEST(Session, Never_queues_a_long_run_or_one_that_another_result_could_stop) {
  World longer(always(passes(1s)), 2);
  longer.executor.allow_queue();
  SessionPolicy policy;
  policy.repeat = 4;
  EXPECT_EQ(longer.run(plan_of({named("a")}), policy)->elapsed, 2s);

  World failing([](const Experiment&, int nth) { return nth == 3 ? fails() : passes(); });
  failing.executor.allow_queue();
  policy.until_fail = true;
  failing.run(plan_of({named("a")}), policy).value();
  EXPECT_EQ(failing.order().size(), 3u);
}

TEST(Session, An_interrupt_drops_what_was_queued) {
  World world(always(passes()));
  world.executor.allow_queue();
  world.executor.interrupt_after(3, Stopped{});
  SessionPolicy policy;
  policy.repeat = 100;
  EXPECT_EQ(world.run(plan_of({named("a")}), policy)->runs.passes, 3);
}

TEST(Session, Passes_on_a_request_for_the_live_state) {
  World world(always(passes()));
  world.executor.interrupt_after(0, StatusAsked{});
  world.run(plan_of({named("a")})).value();
  EXPECT_EQ(world.recorder.status_requests, 1);
}

TEST(Session, Tells_what_it_has_when_no_more_runs_can_be_made) {
  World world(always(passes()));
  world.executor.interrupt_after(1, Broken{internal_error("gone")});
  const auto ended = world.run(plan_of({named("a"), named("b")}));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().what, "gone");
  EXPECT_EQ(world.recorder.session->passed, 1);
  EXPECT_EQ(world.recorder.session->not_run, 1);
}

std::vector<std::string> told(const std::vector<RunSlow>& slow_runs) {
  std::vector<std::string> lines;
  for (const RunSlow& run : slow_runs)
    lines.push_back(run.test->id.name + " " + std::to_string(run.attempt) + " > " +
                    duration_word(run.after));
  return lines;
}

TEST(Session, Tells_a_run_that_goes_on_for_long_at_every_multiple_of_the_time) {
  World world([](const Experiment& experiment, int) {
    return passes(experiment.tests.last().id.name == "slow" ? 3500ms : 900ms);
  });
  SessionPolicy policy;
  policy.slow_after = 1s;
  world.run(plan_of({named("quick"), named("slow")}), policy).value();
  EXPECT_THAT(told(world.recorder.slow_runs),
              ElementsAre("slow 1 > 1000ms", "slow 1 > 2000ms", "slow 1 > 3000ms"));
}

TEST(Session, Counts_the_time_of_each_run_by_itself) {
  World world([](const Experiment&, int nth) { return passes(nth == 2 ? 1500ms : 800ms); }, 2);
  SessionPolicy policy;
  policy.repeat = 2;
  policy.slow_after = 1s;
  policy.tick = 100ms;
  world.run(plan_of({named("a"), named("b")}), policy).value();
  EXPECT_THAT(told(world.recorder.slow_runs), ElementsAre("b 1 > 1000ms"));
}

TEST(Session, Counts_the_time_of_a_queued_run_from_when_it_begins) {
  World world(always(passes(40ms)));
  world.executor.allow_queue();
  SessionPolicy policy;
  policy.repeat = 50;
  policy.slow_after = 50ms;
  world.run(plan_of({named("a")}), policy).value();
  EXPECT_THAT(told(world.recorder.slow_runs), testing::IsEmpty());
}

TEST(Session, Tells_no_slow_run_unless_it_is_told_to) {
  World world(always(passes(24h)));
  world.run(plan_of({named("a")})).value();
  EXPECT_THAT(told(world.recorder.slow_runs), testing::IsEmpty());
}

TEST(Session, Tells_the_slowest_tests_by_their_longest_runs) {
  World world([](const Experiment& experiment, int nth) {
    if (experiment.tests.last().id.name == "b") return nth == 2 ? fails(5s) : passes(1s);
    return passes(experiment.tests.last().id.name == "a" ? 2s : 3s);
  });
  SessionPolicy policy;
  policy.repeat = 2;
  policy.slowest = 2;
  const auto ended = world.run(plan_of({named("a"), named("b"), named("c")}), policy);
  ASSERT_EQ(ended->slowest.size(), 2u);
  EXPECT_EQ(ended->slowest[0].test->id.name, "b");
  EXPECT_EQ(ended->slowest[0].duration, Duration(5s));
  EXPECT_EQ(ended->slowest[1].test->id.name, "c");
  policy.slowest = 10;
  EXPECT_EQ(world.run(plan_of({named("a"), named("b")}), policy)->slowest.size(), 2u);
  EXPECT_TRUE(world.run(plan_of({named("a")}))->slowest.empty());
}

}  // namespace
}  // namespace unflake
