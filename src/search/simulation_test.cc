#include "support/simulated_test.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;
using simulated::is_set;
using simulated::Program;
using simulated::State;

// Main sleeps and hopes that the letter has come.
Program late_letter() {
  Program program;
  simulated::Script& sender = program.thread();
  sender.enter("send").line("post.cc:4").sleep("post.cc:5", 6ms).set("letter");
  program.main()
      .create("post.cc:10", sender)
      .sleep("post.cc:11", 10ms)
      .check("post.cc:12", is_set("letter"))
      .join("post.cc:13", sender);
  return program;
}

Plan watching() {
  Plan plan;
  plan.agent = plan.calls = plan.stacks = true;
  return plan;
}

Intervention delay(const std::string& site, const std::string& thread, Duration duration) {
  Intervention delay;
  delay.site = *parse_site(site);
  delay.duration = duration;
  if (thread.empty()) return delay;
  delay.threads = Intervention::Threads::named;
  delay.thread = simulated::thread_named(thread);
  return delay;
}

Plan delaying(const std::string& site, const std::string& thread, Duration duration) {
  Plan plan = watching();
  plan.interventions = {delay(site, thread, duration)};
  return plan;
}

ExperimentResult run(const Program& program, const Plan& plan, Duration timeout = 60s) {
  return simulated::run(program, {nullptr, plan, timeout});
}

const TracedCall& event_at(const Trace& trace, const std::string& site) {
  static const TracedCall none;
  for (const TracedCall& event : trace.calls)
    if (to_string(trace.sites[event.site].name) == site && !event.is_intervention) return event;
  ADD_FAILURE() << "no event at " << site;
  return none;
}

TEST(SimulatedTest, Passes_and_fails_as_its_delays_say) {
  const Program program = late_letter();
  EXPECT_EQ(run(program, watching()).outcome.kind, OutcomeKind::pass);
  const auto late = run(program, delaying("post.cc:5:nanosleep", "post.cc:10#1", 5ms));
  EXPECT_EQ(late.outcome.kind, OutcomeKind::fail);
  EXPECT_EQ(late.outcome.failures.front().line, 12);
  EXPECT_EQ(run(program, delaying("post.cc:5:nanosleep", "main", 5ms)).outcome.kind,
            OutcomeKind::pass);
}

TEST(SimulatedTest, Is_the_same_every_time) {
  const Program program = late_letter();
  const auto first = run(program, watching()), second = run(program, watching());
  EXPECT_EQ(first.outcome.duration, second.outcome.duration);
  EXPECT_EQ(first.trace->calls.size(), second.trace->calls.size());
}

TEST(SimulatedTest, Tells_what_the_agent_would_tell) {
  const auto result = run(late_letter(), watching());
  const Trace& trace = *result.trace;
  ASSERT_EQ(trace.threads.size(), 2u);
  EXPECT_EQ(trace.threads[1].name.text, "post.cc:10#1");
  EXPECT_EQ(trace.threads[1].parent, 0u);
  const TracedCall& sleep = event_at(trace, "post.cc:5:nanosleep");
  EXPECT_EQ(sleep.thread, 1u);
  EXPECT_EQ(sleep.value, 6'000'000);
  EXPECT_TRUE(sleep.timed_out);
  EXPECT_GE(sleep.exit - sleep.enter, 6ms);
  EXPECT_EQ(event_at(trace, "post.cc:10:pthread_create").object,
            event_at(trace, "post.cc:13:pthread_join").object);
  EXPECT_EQ(trace.visits.size(), 4u);
  EXPECT_TRUE(trace.functions.empty());
}

TEST(SimulatedTest, Tells_nothing_without_the_agent) {
  EXPECT_EQ(run(late_letter(), Plan()).trace, nullptr);
}

TEST(SimulatedTest, Tells_where_it_failed) {
  const auto late = run(late_letter(), delaying("post.cc:10:pthread_create", "", 0ms));
  EXPECT_TRUE(late.trace->failures.empty());
  const auto failed = run(late_letter(), delaying("post.cc:5:nanosleep", "", 1s));
  ASSERT_EQ(failed.trace->failures.size(), 1u);
  EXPECT_EQ(failed.trace->failures[0].thread, 0u);
  EXPECT_EQ(failed.trace->failures[0].stack.frames[0].source[0].line, 12);
}

TEST(SimulatedTest, Counts_what_became_of_interventions) {
  const auto result = run(late_letter(), delaying("post.cc:5:nanosleep", "", 1s));
  EXPECT_EQ(result.trace->interventions[0].visits, 1u);
  EXPECT_EQ(result.trace->interventions[0].fired, 1u);
  EXPECT_EQ(result.trace->interventions[0].added, 1s);
}

TEST(SimulatedTest, Sees_lines_and_functions_only_where_the_plan_looks) {
  for (const char* site : {"post.cc:4", "send()"}) {
    const auto result = run(late_letter(), delaying(site, "", 5ms));
    EXPECT_EQ(result.outcome.kind, OutcomeKind::fail) << site;
    EXPECT_EQ(result.trace->sites.size(), 5u);
  }
  Plan plan = watching();
  plan.functions = true;
  const auto functions = run(late_letter(), plan).trace->functions;
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].name, "send");
  EXPECT_EQ(functions[0].lines, (std::vector{4, 5}));
}

TEST(SimulatedTest, Delays_a_new_thread_before_its_first_step) {
  Plan plan = delaying("post.cc:10:pthread_create", "post.cc:10#1", 5ms);
  plan.interventions[0].position = Intervention::Position::start;
  EXPECT_EQ(run(late_letter(), plan).outcome.kind, OutcomeKind::fail);
}

TEST(SimulatedTest, Refuses_a_plan_for_a_site_that_it_has_not) {
  const auto result = run(late_letter(), delaying("post.cc:99", "", 5ms));
  EXPECT_EQ(result.process.end, ProcessResult::End::not_started);
}

TEST(SimulatedTest, Obeys_which_visits_are_meant) {
  Program program;
  program.main().repeat(4, [](simulated::Script& loop) { loop.call("a.cc:1", "sched_yield"); });
  const auto added = [&](Intervention::Visits visits, uint64_t nth) {
    Plan plan = delaying("a.cc:1:sched_yield", "", 80ms);
    plan.interventions[0].visits = visits;
    plan.interventions[0].nth = nth;
    return run(program, plan).trace->interventions[0].added;
  };
  EXPECT_EQ(added(Intervention::Visits::every, 1), 320ms);
  EXPECT_EQ(added(Intervention::Visits::only_nth, 2), 80ms);
  EXPECT_EQ(added(Intervention::Visits::from_nth, 2), 240ms);
  EXPECT_EQ(added(Intervention::Visits::halving, 1), 150ms);
}

TEST(SimulatedTest, Holds_until_another_site_was_reached) {
  Program program;
  simulated::Script& other = program.thread();
  other.sleep("a.cc:5", 30ms).set("done");
  program.main()
      .create("a.cc:1", other)
      .call("a.cc:2", "sched_yield")
      .check("a.cc:3", is_set("done"))
      .join("a.cc:4", other);
  EXPECT_TRUE(run(program, watching()).outcome.failed());
  Plan plan = delaying("a.cc:2:sched_yield", "main", 5s);
  plan.interventions[0].action = Intervention::Action::hold;
  plan.interventions[0].until = 1;
  plan.interventions.push_back(delay("a.cc:5:nanosleep", "", 0ms));
  plan.interventions[1].action = Intervention::Action::watch;
  plan.interventions[1].position = Intervention::Position::after;
  EXPECT_FALSE(run(program, plan).outcome.failed());
  EXPECT_EQ(run(program, plan).trace->interventions[0].let_go, 0u);
}

TEST(SimulatedTest, Loses_a_signal_that_nobody_waits_for) {
  Program program;
  simulated::Script& other = program.thread();
  other.work(1ms).signal("a.cc:5", "go");
  program.main().create("a.cc:1", other).wait("a.cc:2", "go").join("a.cc:3", other);
  EXPECT_FALSE(run(program, watching()).outcome.failed());
  const auto hung = run(program, delaying("a.cc:2:pthread_cond_wait", "main", 5ms), 7s);
  EXPECT_EQ(hung.outcome.kind, OutcomeKind::timeout);
  EXPECT_EQ(hung.outcome.duration, 7s);
  EXPECT_TRUE(event_at(*hung.trace, "a.cc:2:pthread_cond_wait").unfinished);
}

TEST(SimulatedTest, Does_not_wait_for_what_already_holds) {
  Program program;
  simulated::Script& other = program.thread();
  other.work(1ms).lock("a.cc:5", "m").set("go").signal("a.cc:6", "c").unlock("a.cc:7", "m");
  program.main()
      .create("a.cc:1", other)
      .lock("a.cc:2", "m")
      .wait("a.cc:3", "c", is_set("go"), "m")
      .unlock("a.cc:4", "m")
      .join("a.cc:8", other);
  EXPECT_FALSE(run(program, watching()).outcome.failed());
  EXPECT_FALSE(run(program, delaying("a.cc:2:pthread_mutex_lock", "main", 9ms)).outcome.failed());
}

TEST(SimulatedTest, Tells_which_timed_waits_timed_out) {
  Program program;
  simulated::Script& other = program.thread();
  other.work(10ms).set("go").signal("a.cc:5", "c");
  program.main()
      .create("a.cc:1", other)
      .wait_for("a.cc:2", "c", 20ms, is_set("go"))
      .check("a.cc:3", [](const State& state) { return !state.is_set("c timed out"); })
      .join("a.cc:4", other);
  const auto passed = run(program, watching());
  EXPECT_FALSE(passed.outcome.failed());
  EXPECT_FALSE(event_at(*passed.trace, "a.cc:2:pthread_cond_clockwait").timed_out);
  const auto late = run(program, delaying("a.cc:5:pthread_cond_signal", "", 15ms));
  EXPECT_FALSE(late.outcome.failed()) << "it looks again when its time is over";
  EXPECT_TRUE(event_at(*late.trace, "a.cc:2:pthread_cond_clockwait").timed_out);
}

TEST(SimulatedTest, Waits_for_semaphores_and_mutexes) {
  Program program;
  simulated::Script& other = program.thread();
  other.lock("a.cc:5", "m").post("a.cc:6", "s").work(5ms).set("done").unlock("a.cc:7", "m");
  program.main()
      .create("a.cc:1", other)
      .acquire("a.cc:2", "s")
      .lock("a.cc:3", "m")
      .check("a.cc:4", is_set("done"));
  const auto result = run(program, watching());
  EXPECT_FALSE(result.outcome.failed());
  EXPECT_GE(result.outcome.duration, 5ms);
}

TEST(SimulatedTest, Crashes_where_a_fatal_check_fails) {
  Program program;
  program.main().crash_unless("a.cc:1", is_set("alive")).check("a.cc:2", is_set("alive"));
  const auto result = run(program, watching());
  EXPECT_EQ(result.outcome.kind, OutcomeKind::crash);
  EXPECT_EQ(result.outcome.failures.size(), 1u);
}

TEST(SimulatedTest, Holds_its_exit_for_a_thread_that_was_made_late) {
  Program program;
  simulated::Script& other = program.thread();
  other.call("a.cc:5", "sched_yield").crash_unless("a.cc:6", is_set("alive"));
  program.main().set("alive").create("a.cc:1", other).work(1ms).set("alive", 0);
  EXPECT_FALSE(run(program, watching()).outcome.failed());
  Plan plan = delaying("a.cc:5:sched_yield", "", 50ms);
  EXPECT_EQ(run(program, plan).outcome.kind, OutcomeKind::crash);
  plan.hold_exit = false;
  EXPECT_FALSE(run(program, plan).outcome.failed());
}

TEST(SimulatedTest, Works_slower_when_processors_are_scarce) {
  Program program;
  program.main().work(10ms);
  Experiment experiment{TestOrder(), watching()};
  experiment.conditions.cpu_share = 0.1;
  EXPECT_GE(simulated::run(program, experiment).outcome.duration, 100ms);
}

TEST(SimulatedTest, Fails_by_itself_as_often_as_it_should) {
  Program program;
  program.failure_rate = 0.3;
  int failures = 0;
  for (int nth = 1; nth <= 1000; ++nth)
    failures += simulated::run(program, {nullptr, watching()}, nth).outcome.failed();
  EXPECT_NEAR(failures, 300, 60);
}

TEST(SimulatedTest, Is_a_truth_for_an_executor) {
  const Program program = late_letter();
  MockExecutor executor = simulated::executor_of(program);
  const auto result = executor.run({simulated::test_of(program), watching()});
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->outcome.failed());
  EXPECT_EQ(executor.elapsed(), result->outcome.duration);
}

}  // namespace
}  // namespace unflake
