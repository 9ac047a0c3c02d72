#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "search/balance/balance_runs.h"
#include "support/simulated_balance.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::at_idle;
using simulated::balanced;
using simulated::Program;
using simulated::Script;
using simulated::sleeper;
using simulated::value_at;
using Change = BalancedValue::Change;

// In simulated runs with the proposed values.
int failures_with(const Program& program, const BalanceReport& report, double times, int runs) {
  std::vector<TimeValue> values;
  Setting setting;
  for (const BalancedValue& value : report.values) {
    values.push_back(value.value);
    setting.push_back(std::chrono::duration_cast<Duration>(value.proposed * times));
  }
  Plan plan;
  plan.agent = true;
  const Experiment experiment{simulated::test_of(program), plan_with(plan, values, setting)};
  int failures = 0;
  for (int nth = 100'000; nth < 100'000 + runs && failures < 2; ++nth)
    failures += simulated::run(program, experiment, nth).outcome.failed();
  return failures;
}

TEST(Balance, A_sleep_becomes_as_short_as_what_it_waits_for) {
  const auto report = balanced(sleeper(200ms, 50ms));
  ASSERT_TRUE(report);
  const BalancedValue* value = value_at(*report, "main.cc:11");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->change, Change::shorten);
  EXPECT_GE(value->proposed, 50ms);
  EXPECT_LE(value->proposed, 55ms);
}

TEST(Balance, Says_what_a_sleep_is_for) {
  const auto report = balanced(sleeper(200ms, 50ms));
  const auto& needed = value_at(*report, "main.cc:11")->needed;
  ASSERT_TRUE(needed);
  EXPECT_EQ(needed->call_thread, "main.cc:10#1");
  EXPECT_THAT(to_string(needed->call), testing::StartsWith("worker.cc:"));
  EXPECT_NEAR(double(needed->median.count()), 50'000, 500);
}

TEST(Balance, A_sleep_that_nothing_needs_can_go) {
  Program program;
  program.main().sleep("main.cc:5", 80ms).check("main.cc:6", [](const auto&) { return true; });
  const auto report = balanced(program);
  const BalancedValue* value = value_at(*report, "main.cc:5");
  EXPECT_TRUE(value->is_unneeded);
  EXPECT_EQ(value->proposed, 0ms);
  EXPECT_GT(report->saved_ms(), 75);
}

TEST(Balance, A_sleep_that_is_just_long_enough_is_kept) {
  const auto report = balanced(sleeper(51ms, 50ms));
  EXPECT_EQ(value_at(*report, "main.cc:11")->change, Change::keep);
  EXPECT_EQ(value_at(*report, "main.cc:11")->proposed, 51ms);
}

TEST(Balance, Several_sleeps_are_searched_together) {
  Program program;
  Script& first = program.thread();
  first.work(30ms).set("first");
  Script& second = program.thread();
  second.work(60ms).set("second");
  program.main()
      .create("main.cc:1", first)
      .sleep("main.cc:2", 150ms)
      .check("main.cc:3", simulated::is_set("first"))
      .join("main.cc:4", first)
      .create("main.cc:5", second)
      .sleep("main.cc:6", 400ms)
      .check("main.cc:7", simulated::is_set("second"))
      .sleep("main.cc:8", 90ms);
  const auto report = balanced(program);
  EXPECT_GE(value_at(*report, "main.cc:2")->proposed, 30ms);
  EXPECT_LE(value_at(*report, "main.cc:2")->proposed, 33ms);
  EXPECT_GE(value_at(*report, "main.cc:6")->proposed, 60ms);
  EXPECT_LE(value_at(*report, "main.cc:6")->proposed, 66ms);
  EXPECT_TRUE(value_at(*report, "main.cc:8")->is_unneeded);
}

// On one processor a sleep is over when the thread that it waits for lets go of that, and so the
// thread seems to need as long as is asked for.
TEST(Balance, A_need_that_follows_the_value_does_not_make_the_search_creep) {
  Program program;
  program.jitter = 100us;
  Script& worker = program.thread();
  worker.work(3ms).lock("worker.cc:1", "processor").work(42ms).set("ready");
  worker.unlock("worker.cc:2", "processor");
  program.main()
      .create("main.cc:1", worker)
      .sleep("main.cc:2", 240ms, "processor")
      .check("main.cc:3", simulated::is_set("ready"))
      .join("main.cc:4", worker);
  MockExecutor executor = simulated::executor_of(program, 2);
  BalanceOptions options = at_idle();
  options.limits.at_once = 2;
  EventStream events;
  const auto report = balance(executor, simulated::test_of(program), options, events);
  ASSERT_TRUE(report);
  EXPECT_LE(value_at(*report, "main.cc:2")->proposed, 3500us);
  EXPECT_LE(report->tried.size(), 13u);
}

// Its interval is lowered along with the wait for it, and takes as long as there is time.
TEST(Balance, Does_not_say_what_a_sleep_is_for_when_that_depends_on_another_value) {
  Program program;
  Script& worker = program.thread();
  worker.sleep("worker.cc:5", 400ms)
      .set("ready")
      .lock("worker.cc:6", "m")
      .unlock("worker.cc:7", "m");
  program.main()
      .create("main.cc:10", worker)
      .sleep("main.cc:11", 500ms)
      .check("main.cc:12", simulated::is_set("ready"));
  const auto report = balanced(program);
  for (const BalancedValue& value : report->values) {
    EXPECT_EQ(value.change, Change::shorten);
    EXPECT_LT(value.proposed, 10ms);
    EXPECT_FALSE(value.needed);
  }
}

// Nobody signals: the wait shows that nothing happens. The sleep before it needs 50 ms.
Program sleeper_in_silence() {
  Program program;
  Script& worker = program.thread();
  worker.work(50ms).set("ready").lock("worker.cc:5", "done").unlock("worker.cc:6", "done");
  program.main()
      .create("main.cc:10", worker)
      .sleep("main.cc:11", 200ms)
      .check("main.cc:12", simulated::is_set("ready"))
      .wait_for("main.cc:13", "alarm", 100ms)
      .check("main.cc:14", simulated::is_set("alarm timed out"))
      .join("main.cc:15", worker);
  return program;
}

TEST(Balance, A_wait_that_nothing_ends_is_no_saving_that_counts) {
  Program program;
  program.main()
      .wait_for("main.cc:1", "alarm", 100ms)
      .check("main.cc:2", simulated::is_set("alarm timed out"));
  const auto report = balanced(program);
  EXPECT_TRUE(value_at(*report, "main.cc:1")->may_weaken());
  EXPECT_GT(report->saved_ms(), 95);
  EXPECT_EQ(report->saved_carefully_ms(), 0);
  EXPECT_EQ(report->careful_setting(), nullptr);
}

TEST(Balance, What_is_saved_without_waits_that_nothing_ends_is_measured) {
  const auto report = balanced(sleeper_in_silence());
  EXPECT_TRUE(value_at(*report, "main.cc:13")->may_weaken());
  EXPECT_FALSE(value_at(*report, "main.cc:11")->may_weaken());
  EXPECT_NEAR(report->saved_ms(), 247, 5);
  EXPECT_NEAR(report->saved_carefully_ms(), 147, 5);
  const TriedSetting* careful = report->careful_setting();
  ASSERT_NE(careful, nullptr);
  EXPECT_GE(careful->failures.runs, 10);
  EXPECT_EQ(careful->failures.hits, 0);
}

TEST(Balance, A_place_that_passes_on_times_is_searched_only_when_it_is_asked_for) {
  TimeValue value;
  value.site = parse_site("nap.cc:5:nanosleep").value();
  value.least = 10us;
  value.most = 1s;
  value.runs = 5;
  value.visits = value.ran_out = 10;
  value.spent = 5s;
  value.callers = {{"a.cc:1 in A", 1s, 1s, 5, 5s}, {"a.cc:2 in A", 10us, 10us, 5, 50us}};
  TimeProfile profile;
  profile.run_time = spread_of({1000});
  EXPECT_THAT(why_not_searched(value, profile, {}), testing::HasSubstr("one number for all"));
  EXPECT_EQ(why_not_searched(value, profile, {"nap.cc:5"}), "");
}

TEST(Balance, A_time_out_that_ends_early_is_shown_and_not_searched) {
  Program program;
  Script& worker = program.thread();
  worker.work(20ms).set("ready").signal("worker.cc:3", "changed");
  program.main()
      .create("main.cc:1", worker)
      .wait_for("main.cc:2", "changed", 5s, simulated::is_set("ready"))
      .check("main.cc:3", simulated::is_set("ready"));
  const auto report = balanced(program);
  const BalancedValue* value = value_at(*report, "main.cc:2");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->value.use(), TimeUse::timeout);
  EXPECT_EQ(value->change, Change::not_searched);
  EXPECT_EQ(value->proposed, 5s);
}

TEST(Balance, A_time_out_that_is_asked_for_becomes_as_short_as_it_can) {
  Program program;
  Script& worker = program.thread();
  worker.work(20ms).set("ready").signal("worker.cc:3", "changed");
  program.main()
      .create("main.cc:1", worker)
      .wait_for("main.cc:2", "changed", 1s, simulated::is_set("ready"))
      .check("main.cc:3", simulated::is_set("ready"));
  BalanceOptions options = at_idle();
  options.sites = {"main.cc:2"};
  const auto report = balanced(program, options);
  const BalancedValue* value = value_at(*report, "main.cc:2");
  EXPECT_GE(value->proposed, 20ms);
  EXPECT_LE(value->proposed, 22ms);
}

TEST(Balance, A_test_that_is_given_too_little_time_gets_more) {
  Program program = sleeper(55ms, 50ms);
  program.jitter = 20ms;
  const auto report = balanced(program);
  const BalancedValue* value = value_at(*report, "main.cc:11");
  EXPECT_EQ(value->change, Change::raise);
  EXPECT_GE(value->proposed, 65ms);
  EXPECT_LE(value->proposed, 80ms);
}

TEST(Balance, Failures_that_have_nothing_to_do_with_time_are_accounted_for) {
  Program program = sleeper(200ms, 50ms);
  program.failure_rate = 0.1;
  const auto report = balanced(program);
  const BalancedValue* value = value_at(*report, "main.cc:11");
  EXPECT_EQ(value->change, Change::shorten);
  EXPECT_GE(value->proposed, 50ms);
  EXPECT_LE(value->proposed, 60ms);
  EXPECT_FALSE(report->base_failures.empty());
  EXPECT_THAT(report->notes, testing::Contains(testing::HasSubstr("another reason")));
}

TEST(Balance, A_busy_machine_needs_longer_waits) {
  BalanceOptions options = at_idle();
  options.loads = {LoadLevel::idle, LoadLevel::one_core};
  const auto report = balanced(sleeper(400ms, 50ms), options);
  EXPECT_GE(value_at(*report, "main.cc:11")->proposed, 100ms);
  EXPECT_LE(value_at(*report, "main.cc:11")->proposed, 125ms);
  EXPECT_LE(value_at(*report, "main.cc:11")->loads.front().smallest, 55ms);
}

TEST(Balance, What_became_longer_on_a_busy_machine_is_proposed_as_it_was_proven_there) {
  BalanceOptions options = at_idle();
  options.loads = {LoadLevel::idle, LoadLevel::busy};
  const auto report = balanced(sleeper(585s, 300ms), options);
  ASSERT_TRUE(report);
  const Duration proposed = value_at(*report, "main.cc:11")->proposed;
  EXPECT_GT(proposed, 400ms);
  const TriedSetting* proof = report->final_setting(LoadLevel::busy);
  ASSERT_NE(proof, nullptr);
  EXPECT_GE(proof->failures.runs, 50);
}

TEST(Balance, What_became_longer_at_a_later_load_is_run_again_at_the_ones_before) {
  BalanceOptions options = at_idle();
  options.loads = {LoadLevel::idle, LoadLevel::one_core, LoadLevel::busy};
  const auto report = balanced(sleeper(200ms, 50ms), options);
  ASSERT_TRUE(report);
  for (const LoadLevel load : options.loads) {
    const TriedSetting* proposed = report->final_setting(load);
    ASSERT_NE(proposed, nullptr) << to_string(load);
    EXPECT_GE(proposed->failures.runs, 10) << to_string(load);
  }
}

TEST(Balance, A_wait_that_is_too_short_on_a_busy_machine_only_becomes_longer) {
  BalanceOptions options = at_idle();
  options.loads = {LoadLevel::idle, LoadLevel::one_core};
  const auto report = balanced(sleeper(52ms, 50ms), options);
  const BalancedValue* value = value_at(*report, "main.cc:11");
  EXPECT_EQ(value->change, Change::raise);
  EXPECT_GE(value->proposed, 100ms);
  EXPECT_LE(value->proposed, 125ms);
  EXPECT_THAT(report->notes, testing::Contains(testing::HasSubstr("one core")));
}

TEST(Balance, A_slower_machine_gets_scaled_values) {
  BalanceOptions options = at_idle();
  options.scale = 2;
  const auto report = balanced(sleeper(400ms, 50ms), options);
  EXPECT_GE(value_at(*report, "main.cc:11")->proposed, 100ms);
  EXPECT_LE(value_at(*report, "main.cc:11")->proposed, 112ms);
}

TEST(Balance, A_test_without_time_values_has_nothing_to_balance) {
  Program program;
  program.main().work(5ms);
  const auto report = balanced(program);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->values.empty());
}

TEST(Balance, A_broken_test_is_not_searched) {
  Program program = sleeper(200ms, 50ms);
  program.failure_rate = 1;
  const auto report = balanced(program);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->base.empty());
  EXPECT_THAT(report->notes, testing::Contains(testing::HasSubstr("broken")));
}

TEST(Balance, A_site_without_a_time_value_is_an_error_that_names_the_others) {
  BalanceOptions options = at_idle();
  options.sites = {"main.cc:99"};
  const auto report = balanced(sleeper(200ms, 50ms), options);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().next, testing::HasSubstr("main.cc:11"));
}

TEST(Balance, A_timer_that_the_test_waits_for_is_shortened) {
  Program program;
  Script& worker = program.thread();
  worker.work(50ms).set("ready").lock("worker.cc:5", "done").unlock("worker.cc:6", "done");
  program.main()
      .create("main.cc:1", worker)
      .arm("main.cc:2", "alarm", 200ms)
      .wait("main.cc:3", "alarm", simulated::is_set("alarm is due"))
      .check("main.cc:4", simulated::is_set("ready"));
  const auto report = balanced(program);
  const BalancedValue* value = value_at(*report, "main.cc:2");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->change, Change::shorten);
  EXPECT_GE(value->proposed, 50ms);
  EXPECT_LE(value->proposed, 55ms);
}

TEST(Balance, A_watchdog_is_left_alone) {
  Program program = sleeper(200ms, 50ms);
  program.main()
      .arm("main.cc:20", "watchdog", 30s)
      .work(10ms)
      .check("main.cc:21", [](const auto& state) { return !state.is_set("watchdog is due"); });
  const auto report = balanced(program);
  const BalancedValue* watchdog = value_at(*report, "main.cc:20");
  ASSERT_NE(watchdog, nullptr);
  EXPECT_EQ(watchdog->change, Change::not_searched);
  EXPECT_EQ(watchdog->proposed, 30s);
  EXPECT_THAT(watchdog->reason, testing::HasSubstr("nothing waits for it"));
  EXPECT_EQ(value_at(*report, "main.cc:11")->change, Change::shorten);
}

TEST(Balance, An_interval_between_looks_is_left_alone) {
  Program program;
  Script& worker = program.thread();
  worker.work(99ms).set("ready");
  program.main().create("main.cc:1", worker).poll("main.cc:2", 2ms, simulated::is_set("ready"));
  const auto report = balanced(program);
  const BalancedValue* interval = value_at(*report, "main.cc:2");
  ASSERT_NE(interval, nullptr);
  EXPECT_EQ(interval->change, Change::not_searched);
  EXPECT_EQ(interval->proposed, 2ms);
  EXPECT_THAT(interval->reason, testing::HasSubstr("looks more often"));
}

// What is looked for comes from a wait that must be longer than an interval.
TEST(Balance, An_interval_that_another_value_depends_on_goes_down_with_it) {
  Program program;
  Script& worker = program.thread();
  worker.repeat(5, [](Script& script) { script.sleep("worker.cc:5", 40ms); }).set("done");
  program.main()
      .create("main.cc:10", worker)
      .sleep("main.cc:11", 400ms)
      .check("main.cc:12", simulated::is_set("done"));
  const auto report = balanced(program);
  for (const BalancedValue& value : report->values) {
    EXPECT_EQ(value.change, Change::shorten) << value.reason;
    EXPECT_LT(value.proposed, value.value.most / 10);
  }
}

TEST(Balance, A_long_interval_between_looks_is_shortened) {
  Program program;
  Script& worker = program.thread();
  worker.work(105ms).set("ready");
  program.main().create("main.cc:1", worker).poll("main.cc:2", 25ms, simulated::is_set("ready"));
  const auto report = balanced(program);
  EXPECT_EQ(value_at(*report, "main.cc:2")->change, Change::shorten);
  EXPECT_GT(report->saved_ms(), 15);
}

TEST(Balance, What_held_by_half_of_the_time_is_proven_in_the_other_half) {
  Program program;
  for (const std::string name : {"1", "2", "3", "4", "5", "6"}) {
    Script& worker = program.thread();
    worker.work(100ms).set(name);
    program.main()
        .create("create.cc:" + name, worker)
        .sleep("sleep.cc:" + name, 170ms)
        .check("check.cc:" + name, simulated::is_set(name))
        .join("join.cc:" + name, worker);
  }
  BalanceOptions options = at_idle();
  options.limits.budget = 220s;
  const auto report = balanced(program, options);
  for (const BalancedValue& value : report->values) {
    EXPECT_EQ(value.change, Change::shorten);
    EXPECT_GE(value.proposed, 100ms);
  }
  EXPECT_THAT(report->notes, testing::Contains(testing::HasSubstr("--budget")));
}

TEST(Balance, Nothing_is_proposed_when_the_budget_is_over_too_early) {
  BalanceOptions options = at_idle();
  options.limits.budget = 4s;
  const auto report = balanced(sleeper(200ms, 50ms), options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->out_of_budget);
  EXPECT_EQ(value_at(*report, "main.cc:11")->proposed, 200ms);
  EXPECT_THAT(value_at(*report, "main.cc:11")->reason, testing::HasSubstr("was over before"));
}

TEST(Balance, Stops_when_it_is_asked_to) {
  const Program program = sleeper(200ms, 50ms);
  MockExecutor executor = simulated::executor_of(program);
  executor.interrupt_after(30, Stopped{});
  EventStream events;
  const auto report = balance(executor, simulated::test_of(program), at_idle(), events);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->interrupted);
  EXPECT_LE(executor.started().size(), 32u);
}

TEST(Balance, Runs_that_do_not_disturb_each_other_are_made_at_once) {
  const Program program = sleeper(200ms, 50ms);
  MockExecutor executor = simulated::executor_of(program, 2);
  BalanceOptions options = at_idle();
  options.limits.at_once = 2;
  EventStream events;
  const auto report = balance(executor, simulated::test_of(program), options, events);
  EXPECT_EQ(report->at_once, 2);
  EXPECT_EQ(executor.most_at_once(), 2u);
}

TEST(Balance, Failures_that_only_runs_side_by_side_have_do_not_count) {
  const Program program = sleeper(200ms, 50ms);
  const auto sometimes_fails = [&](const Experiment& experiment, int nth) {
    ExperimentResult result = simulated::run(program, experiment, nth);
    if (nth == 90 || nth == 100) result.outcome.kind = OutcomeKind::fail;
    return result;
  };
  MockExecutor executor(MockExecutor::FullTruth(sometimes_fails), 2);
  BalanceOptions options = at_idle();
  options.limits.at_once = 2;
  EventStream events;
  const auto report = balance(executor, simulated::test_of(program), options, events);
  EXPECT_EQ(report->at_once, 1);
  EXPECT_THAT(report->notes, testing::Contains(testing::HasSubstr("runs side by side failed")));
  const auto proposed = std::ranges::find(report->tried, true, &TriedSetting::is_final);
  ASSERT_NE(proposed, report->tried.end());
  EXPECT_EQ(proposed->failures.hits, 0);
}

TEST(Balance, Takes_a_third_of_the_runs_of_the_fixed_number) {
  BalanceOptions fixed = at_idle();
  fixed.fatb = true;
  const auto ours = balanced(sleeper(200ms, 50ms));
  const auto paper = balanced(sleeper(200ms, 50ms), fixed);
  EXPECT_LE(ours->runs * 3, paper->runs);
  EXPECT_LE(value_at(*paper, "main.cc:11")->proposed, 55ms);
  EXPECT_GE(value_at(*paper, "main.cc:11")->proposed, 50ms);
}

// The smallest value that meets the tolerance lies at most a tenth below the proposed one, which
// meets it itself.
TEST(Balance, Proposals_are_tight_and_never_too_short) {
  int cases = 0, tight = 0, too_short = 0, runs = 0;
  for (const Duration needs : {15ms, 40ms, 66ms})
    for (const int spread : {0, 5, 20, 50})
      for (const Duration asked : {150ms, 400ms}) {
        Program program = sleeper(asked, needs);
        program.jitter = needs * spread / 100;
        program.seed = static_cast<uint64_t>(cases) + 1;
        const auto report = balanced(program);
        if (value_at(*report, "main.cc:11")->change != Change::shorten) continue;
        ++cases;
        runs += report->runs;
        too_short += failures_with(program, *report, 1, 1000) > 1;
        tight += failures_with(program, *report, 1 / 1.1, 1000) > 1;
      }
  EXPECT_EQ(cases, 24);
  EXPECT_EQ(too_short, 0);
  EXPECT_GE(tight, cases * 95 / 100);
  EXPECT_LE(runs / cases, 200);
}

// A value that lies between a usual and a rare need holds by chance now and then, and the more
// often the more such values are tried.
TEST(Balance, A_rare_need_is_met_at_once_when_it_was_seen) {
  const Program usual = sleeper(250ms, 25ms), slow = sleeper(250ms, 70ms);
  int too_short = 0, too_long = 0, runs = 0;
  constexpr int searches = 40;
  for (int seed = 0; seed < searches; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int nth) {
      const bool is_slow = std::bernoulli_distribution(0.06)(random);
      return simulated::run(is_slow ? slow : usual, experiment, nth);
    }));
    EventStream events;
    const auto report = balance(executor, simulated::test_of(usual), at_idle(), events);
    const Duration proposed = value_at(*report, "main.cc:11")->proposed;
    too_short += proposed < 70ms;
    too_long += proposed > 77ms;
    runs += report->runs;
  }
  EXPECT_EQ(too_short, 0);
  EXPECT_LE(too_long, 2);
  EXPECT_LE(runs / searches, 250);
}

TEST(RoundUp, Takes_what_reads_well_and_is_close) {
  EXPECT_EQ(round_up(Duration(53'600us)), 54ms);
  EXPECT_EQ(round_up(Duration(11'230us)), Duration(11'300us));
  EXPECT_EQ(round_up(Duration(71'200us)), 72ms);
  EXPECT_EQ(round_up(Duration(1'234ms)), Duration(1'234ms));
  EXPECT_EQ(round_up(Duration(50ms)), 50ms);
  EXPECT_EQ(round_up(Duration(0)), 0ms);
  EXPECT_EQ(round_up(Duration(7us)), 7us);
}

}  // namespace
}  // namespace unflake
