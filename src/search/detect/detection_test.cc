#include "search/detect/detection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "support/mock_executor.h"
#include "support/simulated_test.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using Answer = DetectedTest::Answer;
using simulated::is_set;
using simulated::Program;

// Tests whose truths are known, run by one executor in simulated time.
class SimulatedWorld : public Consumer {
 public:
  SimulatedWorld()
      : executor(MockExecutor::FullTruth(
            [this](const Experiment& experiment, int nth) { return run(experiment, nth); })) {
    events.add(*this);
  }

  Program& add(const std::string& name, Duration work, double failure_rate = 0) {
    Program& program = programs_[name];
    program.name = name;
    program.failure_rate = failure_rate;
    program.seed = programs_.size();
    program.main().work(work);
    auto test = std::make_shared<unflake::Test>();
    test->id = {"world_test", name};
    inputs.push_back({test, 60s});
    return program;
  }
  // Main hopes that a letter comes within 10 ms; it takes 6.
  void add_hope(const std::string& name) {
    Program& program = add(name, 1ms);
    simulated::Script& sender = program.thread();
    sender.enter("send").line("post.cc:4").sleep("post.cc:5", 6ms).set("letter");
    program.main()
        .create("post.cc:10", sender)
        .sleep("post.cc:11", 10ms)
        .check("post.cc:12", is_set("letter"))
        .join("post.cc:13", sender);
  }

  DetectReport detect(const DetectOptions& options) {
    Detection detection(executor, events, inputs, options);
    const auto done = detection();
    EXPECT_TRUE(done);
    return detection.report();
  }

  void on(const Event& event) override {
    plain_runs += std::holds_alternative<RunEnded>(event);
    if (const auto* ended = std::get_if<RunEnded>(&event)) all_plain &= !ended->plan.agent;
    if (const auto* ended = std::get_if<TrialEnded>(&event)) all_plain &= ended->plan.agent;
    trials += std::holds_alternative<TrialEnded>(event);
  }

  MockExecutor executor;
  EventStream events;
  std::vector<DetectInput> inputs;
  int plain_runs = 0, trials = 0;
  bool all_plain = true;  // runs, and no trial
  std::string broken;     // a test that cannot be started
  // Conditions under which every test fails.
  std::function<bool(const Conditions&)> breaks_under = [](const Conditions&) { return false; };

 private:
  ExperimentResult run(const Experiment& experiment, int nth) {
    const std::string& name = experiment.tests.last().id.name;
    if (name == broken) {
      ExperimentResult result;
      result.outcome.kind = OutcomeKind::fail;
      result.process.end = ProcessResult::End::not_started;
      result.process.error = "no such file";
      return result;
    }
    ExperimentResult result = simulated::run(programs_.at(name), experiment, nth);
    if (breaks_under(experiment.conditions)) result.outcome.kind = OutcomeKind::fail;
    return result;
  }

  std::map<std::string, Program> programs_;
};

DetectOptions for_a_time(Duration budget) {
  DetectOptions options;
  options.budget = budget;
  return options;
}

const DetectedTest& answer_for(const DetectReport& report, const std::string& name) {
  static const DetectedTest none;
  for (const DetectedTest& test : report.tests)
    if (test.id.name == name) return test;
  ADD_FAILURE() << "no test " << name;
  return none;
}

TEST(Detection, keeps_its_three_answers_apart) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.add("Loud.Flaky", 5ms, 0.2);
  world.add_hope("Late.Hopes");
  const DetectReport report = world.detect(for_a_time(60s));
  EXPECT_EQ(answer_for(report, "Calm.Sound").answer, Answer::no_sign);
  EXPECT_EQ(answer_for(report, "Loud.Flaky").answer, Answer::seen_flaky);
  const DetectedTest& late = answer_for(report, "Late.Hopes");
  EXPECT_EQ(late.answer, Answer::fails_perturbed);
  EXPECT_EQ(late.plain.failures, 0);
  ASSERT_TRUE(late.perturbed);
  const auto slack = slack_of(*late.perturbed);
  ASSERT_TRUE(slack);
  EXPECT_GT(*slack, 2ms);
  EXPECT_LT(*slack, 20ms);
  EXPECT_EQ(report.tests[0].id.name, "Loud.Flaky");
  EXPECT_EQ(report.tests[1].id.name, "Late.Hopes");
}

TEST(Detection, a_test_that_depends_on_the_order_is_perturbed_and_not_seen_flaky) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.add("Calm.Victim", 5ms);
  world.add("Calm.Brittle", 5ms, 1);
  DetectOptions options = for_a_time(60s);
  options.look_for_orders = [&](Duration most) -> Result<DetectOptions::Ordered> {
    EXPECT_LE(most, 60s * options.orders_share);
    DetectOptions::Ordered all;
    for (const char* name : {"Calm.Victim", "Calm.Brittle", "Not.Selected"}) {
      Repro repro;
      repro.test = {"world_test", name};
      repro.order.emplace();
      all.found.push_back({repro, "file"});
    }
    return all;
  };
  const DetectReport report = world.detect(options);
  EXPECT_EQ(answer_for(report, "Calm.Sound").answer, Answer::no_sign);
  EXPECT_EQ(answer_for(report, "Calm.Victim").answer, Answer::fails_perturbed);
  EXPECT_EQ(answer_for(report, "Calm.Victim").plain.failures, 0);
  EXPECT_EQ(answer_for(report, "Calm.Brittle").answer, Answer::fails_perturbed);
}

TEST(Detection, names_the_factor_of_a_test_that_was_seen_flaky) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.add("Loud.Flaky", 5ms, 0.2);
  world.breaks_under = [](const Conditions& conditions) { return conditions.umask == "077"; };
  DetectOptions options = for_a_time(10min);
  FactorLevel level;
  level.factor = "umask";
  level.conditions.umask = "077";
  options.factors.levels.push_back(level);
  options.keep_factor = [](const FactorFinding& finding) -> Result<DetectOptions::Kept> {
    Repro repro;
    repro.test = finding.test->id;
    repro.factor = finding.factor;
    return DetectOptions::Kept{repro, "file"};
  };
  const DetectReport report = world.detect(options);
  const DetectedTest& flaky = answer_for(report, "Loud.Flaky");
  EXPECT_EQ(flaky.answer, Answer::seen_flaky);
  EXPECT_EQ(flaky.factors_tried, 1);
  ASSERT_TRUE(flaky.perturbed);
  EXPECT_EQ(flaky.perturbed->factor, "umask");
  EXPECT_EQ(answer_for(report, "Calm.Sound").factors_tried, 0);
}

TEST(Detection, tells_plain_runs_as_runs_and_all_others_as_trials) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.add_hope("Late.Hopes");
  const DetectReport report = world.detect(for_a_time(20s));
  EXPECT_EQ(report.plain_runs, world.plain_runs);
  EXPECT_GT(world.trials, 2);
  EXPECT_TRUE(world.all_plain);
}

TEST(Detection, looks_for_lateness_only_where_there_are_threads_or_waits) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  const DetectReport report = world.detect(for_a_time(20s));
  EXPECT_FALSE(answer_for(report, "Calm.Sound").was_searched);
  EXPECT_EQ(report.trials, 1);
}

TEST(Detection, ends_before_its_time_when_enough_is_known) {
  SimulatedWorld world;
  world.add("Calm.Sound", 1ms);
  const DetectReport report = world.detect(for_a_time(1h));
  EXPECT_THAT(report.enough, HasSubstr("0.30 %"));
  EXPECT_EQ(answer_for(report, "Calm.Sound").plain.passes, 998);
}

TEST(Detection, says_what_it_had_no_time_for) {
  SimulatedWorld world;
  world.add("Slow.Hour", 1h);
  world.inputs.back().timeout = 2h;
  world.inputs.back().seconds = 3600;
  world.add("Calm.Sound", 5ms);
  const DetectReport report = world.detect(for_a_time(5s));
  EXPECT_EQ(answer_for(report, "Calm.Sound").answer, Answer::no_sign);
  const DetectedTest& hour = answer_for(report, "Slow.Hour");
  EXPECT_EQ(hour.answer, Answer::not_run);
  EXPECT_THAT(hour.why, HasSubstr("longer"));
  EXPECT_LE(report.elapsed, 6s);
}

TEST(Detection, a_test_that_cannot_be_started_has_shown_nothing) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.add("Gone.Away", 5ms);
  world.broken = "Gone.Away";
  const DetectReport report = world.detect(for_a_time(5s));
  EXPECT_EQ(answer_for(report, "Gone.Away").answer, Answer::not_run);
  EXPECT_THAT(answer_for(report, "Gone.Away").why, HasSubstr("no such file"));
}

TEST(Detection, a_test_whose_fixture_fails_is_left_alone) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  DetectOptions options = for_a_time(5s);
  options.choose = [](size_t) -> Result<void> { return usage_error("the server is gone"); };
  const DetectReport report = world.detect(options);
  EXPECT_EQ(answer_for(report, "Calm.Sound").answer, Answer::not_run);
  EXPECT_THAT(answer_for(report, "Calm.Sound").why, HasSubstr("the server is gone"));
  EXPECT_EQ(world.plain_runs, 0);
}

TEST(Detection, a_broken_test_is_not_called_flaky) {
  SimulatedWorld world;
  world.add("Bad.Always", 5ms, 1);
  const DetectReport report = world.detect(for_a_time(5s));
  EXPECT_EQ(answer_for(report, "Bad.Always").answer, Answer::always_fails);
}

TEST(Detection, tells_what_it_has_when_it_is_stopped) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.add("Calm.Other", 5ms);
  world.executor.interrupt_after(1, Stopped{});
  Detection detection(world.executor, world.events, world.inputs, for_a_time(60s));
  EXPECT_TRUE(detection());
  const DetectReport report = detection.report();
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(report.count(Answer::no_sign), 1u);
  EXPECT_EQ(report.count(Answer::not_run), 1u);
}

TEST(Detection, says_when_no_more_runs_can_be_made) {
  SimulatedWorld world;
  world.add("Calm.Sound", 5ms);
  world.executor.interrupt_after(0, Broken{internal_error("no processes left")});
  Detection detection(world.executor, world.events, world.inputs, for_a_time(60s));
  EXPECT_FALSE(detection());
}

TEST(Detection, looks_at_every_test_for_a_moment_before_it_looks_at_any_for_long) {
  // Each of these could be searched for half a minute, and the last of them is the one that fails.
  SimulatedWorld world;
  for (int i = 0; i < 30; ++i) {
    Program& program = world.add(fmt::format("Calm.Waits{}", i), 5ms);
    simulated::Script& other = program.thread();
    other.enter("work").sleep("work.cc:5", 6ms).set("done");
    program.main().create("work.cc:10", other).sleep("work.cc:11", 10ms).join("work.cc:13", other);
  }
  world.add_hope("Late.Hopes");
  const DetectReport report = world.detect(for_a_time(60s));
  EXPECT_EQ(answer_for(report, "Late.Hopes").answer, Answer::fails_perturbed);
  for (const DetectedTest& test : report.tests) EXPECT_TRUE(test.was_searched) << test.id.name;
}

TEST(Detection, looks_into_the_short_tests_first_when_there_is_no_time_for_all) {
  SimulatedWorld world;
  for (int i = 0; i < 20; ++i) world.add(fmt::format("Long.Sound{}", i), 4s);
  world.add_hope("Short.Hopes");
  const DetectReport report = world.detect(for_a_time(100s));
  EXPECT_EQ(answer_for(report, "Short.Hopes").answer, Answer::fails_perturbed);
  EXPECT_GT(report.lacked_time(), 10u);
  for (const DetectedTest& test : report.tests)
    if (test.lacked_time) {
      EXPECT_THAT(test.why, HasSubstr("no time was left for a look"));
    }
}

TEST(Detection, looks_into_a_test_that_it_had_no_time_for_when_it_is_seen_flaky) {
  SimulatedWorld world;
  for (int i = 0; i < 10; ++i) world.add(fmt::format("Long.Sound{}", i), 4s);
  world.add("Loud.Flaky", 2s, 0.4);
  const DetectReport report = world.detect(for_a_time(100s));
  const DetectedTest& flaky = answer_for(report, "Loud.Flaky");
  ASSERT_EQ(flaky.answer, Answer::seen_flaky);
  EXPECT_GT(flaky.threads, 0u);
  EXPECT_FALSE(flaky.lacked_time);
}

TEST(Detection, does_not_call_tests_bounded_when_the_time_is_over) {
  SimulatedWorld world;
  for (int i = 0; i < 5; ++i) world.add(fmt::format("Calm.Sound{}", i), 50ms);
  EXPECT_THAT(world.detect(for_a_time(10s)).enough, IsEmpty());
  EXPECT_THAT(world.detect(for_a_time(1h)).enough, HasSubstr("bounded below"));
}

TEST(Detection, needs_a_tenth_of_the_time_that_plain_reruns_take) {
  // One hopeful test among ten sound ones: plain reruns never see it fail.
  SimulatedWorld world;
  for (int i = 0; i < 10; ++i) world.add(fmt::format("Calm.Sound{}", i), 5ms);
  world.add_hope("Late.Hopes");
  DetectOptions options = for_a_time(60s);
  EXPECT_EQ(world.detect(options).count(Answer::fails_perturbed), 1u);
  SimulatedWorld plain;
  plain.add_hope("Late.Hopes");
  options.perturb = false;
  EXPECT_EQ(plain.detect(options).count(Answer::no_sign), 1u);
}

}  // namespace
}  // namespace unflake
