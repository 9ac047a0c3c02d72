#include <array>

#include "agent_runs.h"

namespace unflake {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Visits = Intervention::Visits;
using Threads = Intervention::Threads;

constexpr Duration bound = seconds(30);  // of holds that are expected to be released

const ThreadName& other_thread(const ExperimentResult& profile) {
  return profile.trace->threads.at(1).name;
}

TEST(AgentActions, A_held_thread_waits_for_the_other_one) {
  AgentRuns runs({"plans", "order"});
  const ExperimentResult profile = runs.profile();
  Intervention main_is_done = watch(at(profile, "last_step", "usleep"));
  main_is_done.threads = Threads::named;
  main_is_done.thread = profile.trace->threads[0].name;
  const Intervention child_waits = hold(at(profile, "first_step", "usleep"), 0, bound);
  const ExperimentResult one = runs.intervene({main_is_done, child_waits});
  EXPECT_EQ(one.process.output.text(), "main\nchild\n");
  EXPECT_EQ(one.trace->interventions[1].fired, 1u);
  EXPECT_EQ(one.trace->interventions[1].let_go, 0u);

  Intervention child_is_done = main_is_done;
  child_is_done.thread = other_thread(profile);
  const Intervention main_waits = hold(at(profile, "second_step", "usleep"), 0, bound);
  const ExperimentResult two = runs.intervene({child_is_done, main_waits});
  EXPECT_EQ(two.process.output.text(), "child\nmain\n");
}

TEST(AgentActions, A_hold_lets_go_at_its_bound_and_says_so) {
  AgentRuns runs({"waiting", "sleeper"});  // while somebody sleeps, others may still come
  const ExperimentResult profile = runs.profile();
  Intervention never = watch(at(profile, "second_step", "usleep"));
  never.threads = Threads::named;
  never.thread = {"nobody", 12345, 12345};
  const Intervention held = hold(at(profile, "first_step", "usleep"), 0, milliseconds(5));
  const ExperimentResult result = runs.intervene({never, held});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.trace->interventions[1].let_go, 1u);
  EXPECT_GE(result.trace->interventions[1].added, milliseconds(5));
}

TEST(AgentActions, A_delay_on_every_visit_adds_up) {
  AgentRuns runs({"plans", "visits"});
  const ExperimentResult profile = runs.profile();
  const auto late = delay(at(profile, "visit_often", "usleep"), milliseconds(2));
  const TracedIntervention done = runs.intervene({late}).trace->interventions[0];
  EXPECT_EQ(done.visits, 6u);
  EXPECT_EQ(done.fired, 6u);
  EXPECT_GE(done.added, milliseconds(12));
}

TEST(AgentActions, A_delay_on_the_nth_visit_comes_once) {
  AgentRuns runs({"plans", "visits"});
  const ExperimentResult profile = runs.profile();
  auto late = delay(at(profile, "visit_often", "usleep"), milliseconds(1));
  late.visits = Visits::only_nth;
  late.nth = 4;
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 1u);
  late.visits = Visits::from_nth;
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 3u);
  late.nth = 7;
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 0u);
}

TEST(AgentActions, A_halving_delay_adds_less_than_twice_its_beginning) {
  AgentRuns runs({"plans", "visits"});
  const ExperimentResult profile = runs.profile();
  auto late = delay(at(profile, "visit_often", "usleep"), milliseconds(64));
  late.visits = Visits::halving;
  const TracedIntervention done = runs.intervene({late}).trace->interventions[0];
  EXPECT_EQ(done.fired, 6u);
  EXPECT_GE(done.added, milliseconds(64 + 32 + 16 + 8 + 4 + 2));
}

TEST(AgentActions, A_delay_is_for_one_thread_a_class_or_all) {
  AgentRuns runs({"plans", "threads"});
  const ExperimentResult profile = runs.profile();
  auto late = delay(at(profile, "visit_often", "usleep"), milliseconds(1));
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 18u);
  late.threads = Threads::named;
  late.thread = other_thread(profile);
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 6u);
  late.threads = Threads::in_class;
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 18u);
  late.thread = profile.trace->threads[0].name;
  EXPECT_EQ(runs.intervene({late}).trace->interventions[0].fired, 0u);
}

TEST(AgentActions, Visits_before_the_anchor_do_not_count) {
  AgentRuns runs({"plans", "anchor"});
  const ExperimentResult profile = runs.profile();
  const Intervention anchor = watch(at(profile, "first_step", "usleep"));
  auto late = delay(at(profile, "visit_often", "usleep"), milliseconds(1));
  late.anchor = 0;
  EXPECT_EQ(runs.intervene({anchor, late}).trace->interventions[1].fired, 6u);
  late.visits = Visits::only_nth;
  late.nth = 2;
  EXPECT_EQ(runs.intervene({anchor, late}).trace->interventions[1].fired, 1u);
}

// Until a thread that others do not wait for was quick enough to be seen there.
ExperimentResult profile_with(AgentRuns& runs, const std::string& function, const std::string& api,
                              const Intervention& help) {
  Plan plan = AgentRuns::recording();
  plan.interventions = {help};
  ExperimentResult profile = runs.run(plan);
  for (int tries = 0; tries < 100 && !find_site(*profile.trace, function, api); ++tries)
    profile = runs.run(plan);
  return profile;
}

TEST(AgentActions, The_woken_side_of_a_wait_is_late_without_the_mutex) {
  AgentRuns runs({"plans", "woken"});
  const Intervention main_locks = at(runs.profile(), "woken", "pthread_mutex_lock");
  const auto profile = profile_with(runs, "wait_until_ready", "pthread_cond_wait",
                                    delay(main_locks, milliseconds(100)));
  const Intervention waits = at(profile, "wait_until_ready", "pthread_cond_wait");
  Intervention woken = hold(waits, 0, bound);
  woken.position = Intervention::Position::after;
  const ExperimentResult result = runs.intervene({watch(at(profile, "second_step", "usleep")),
                                                  woken, watch(waits), hold(main_locks, 2, bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.trace->interventions[1].fired, 1u);
  EXPECT_EQ(result.trace->interventions[1].let_go, 0u);
}

TEST(AgentActions, A_new_thread_can_be_late_before_its_first_line) {
  AgentRuns runs({"plans", "order"});
  const ExperimentResult profile = runs.profile();
  Intervention main_is_done = watch(at(profile, "last_step", "usleep"));
  main_is_done.threads = Threads::named;
  main_is_done.thread = profile.trace->threads[0].name;
  Intervention child = hold(at(profile, "order", "pthread_create"), 0, bound);
  child.position = Intervention::Position::start;
  const ExperimentResult result = runs.intervene({main_is_done, child});
  EXPECT_EQ(result.process.output.text(), "main\nchild\n");
  EXPECT_EQ(result.trace->interventions[1].fired, 1u);
}

TEST(AgentActions, The_exit_waits_for_a_thread_that_was_made_late) {
  AgentRuns runs({"plans", "leave"});
  const Intervention main_leaves = at(runs.profile(), "second_step", "usleep");
  const auto profile =
      profile_with(runs, "first_step", "usleep", delay(main_leaves, milliseconds(100)));
  const Intervention late = delay(at(profile, "first_step", "usleep"), milliseconds(100));
  const ExperimentResult result = runs.intervene({watch(late), hold(main_leaves, 0, bound), late});
  EXPECT_EQ(result.process.output.text(), "late\n");
}

class HeldExit : public testing::TestWithParam<const char*> {
 protected:
  AgentRuns runs_{{"plans", GetParam()}};
  const Intervention main_leaves_ = at(runs_.profile(), "second_step", "usleep");
  const ExperimentResult profile_ =
      profile_with(runs_, "last_step", "usleep", delay(main_leaves_, milliseconds(100)));
  const Intervention visitor_comes_ = at(profile_, "first_step", "usleep");
};

TEST_P(HeldExit, A_late_thread_meets_destroyed_objects) {
  const Intervention closed = at(profile_, "Office::closed", "usleep");
  const ExperimentResult result =
      runs_.intervene({watch(visitor_comes_), hold(main_leaves_, 0, bound), watch(closed),
                       hold(visitor_comes_, 2, bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::crash);
  ASSERT_EQ(result.trace->failures.size(), 1u);
  EXPECT_EQ(result.trace->failures[0].kind, "abort");
}

TEST_P(HeldExit, A_thread_that_comes_before_the_end_does_not) {
  const Intervention visitor_leaves = at(profile_, "last_step", "usleep");
  const ExperimentResult result =
      runs_.intervene({watch(visitor_leaves), hold(main_leaves_, 0, bound)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
}

INSTANTIATE_TEST_SUITE_P(, HeldExit, testing::Values("return", "exit"),
                         [](const auto& info) { return std::string(info.param); });

TEST(AgentActions, A_delay_counts_from_its_beginning) {
  AgentRuns runs({"plans", "die"});
  const ExperimentResult profile = runs.profile();
  Intervention late = delay(at(profile, "die_while_other_is_late", "pthread_create"), seconds(50));
  late.position = Intervention::Position::start;
  Intervention begun = watch(late);
  const Intervention wait = hold(at(profile, "second_step", "usleep"), 0, bound);
  const ExperimentResult result = runs.intervene({begun, wait, late});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::crash);
  EXPECT_LT(result.process.duration, seconds(50));
  EXPECT_EQ(result.trace->interventions[2].fired, 1u);
}

class ReplacedTimes : public testing::TestWithParam<std::array<const char*, 4>> {};

TEST_P(ReplacedTimes, A_time_value_is_replaced) {
  const auto& [situation, function, api, output] = GetParam();
  AgentRuns runs({"plans", situation});
  // The site must be seen before it can be named, and nobody waits for 1000 s to see it.
  const ExperimentResult profile = runs.run(AgentRuns::recording(), seconds(2));
  Intervention shorter = at(profile, function, api);
  shorter.action = Intervention::Action::replace_time;
  shorter.duration = milliseconds(1);
  const ExperimentResult result = runs.intervene({shorter});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.process.output.text(), output);
  EXPECT_EQ(result.trace->interventions[0].fired, 1u);
}

INSTANTIATE_TEST_SUITE_P(, ReplacedTimes,
                         testing::Values(std::array{"sleep", "sleep_long", "nanosleep", ""},
                                         std::array{"wait", "wait_long", "pthread_cond_clockwait",
                                                    "timed out\n"},
                                         std::array{"poll", "poll_long", "poll", "0\n"}),
                         [](const auto& info) { return std::string(info.param[0]); });

// Under control, being late takes virtual time.
class ControlledActions : public testing::Test {
 protected:
  ExperimentResult control(AgentRuns& runs, std::vector<Intervention> interventions) {
    Plan plan = AgentRuns::watching();
    plan.interventions = std::move(interventions);
    plan.schedule = Schedule{};
    ExperimentResult result = runs.run(plan);
    EXPECT_TRUE(result.trace && result.trace->controlled);
    EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
    EXPECT_EQ(result.trace->controlled->not_repeatable, "");
    EXPECT_TRUE(result.trace->problems.empty());
    return result;
  }

  AgentRuns order_{{"plans", "order"}};
  const ExperimentResult profile_ = order_.profile();
  const Intervention child_begins_ = at(profile_, "first_step", "usleep");
  const Intervention main_begins_ = at(profile_, "second_step", "usleep");

  Intervention is_done(const ThreadName& thread) const {
    Intervention done = watch(at(profile_, "last_step", "usleep"));
    done.threads = Threads::named;
    done.thread = thread;
    return done;
  }
};

TEST_F(ControlledActions, An_hour_is_over_at_once) {
  const ExperimentResult child_late =
      control(order_, {delay(child_begins_, std::chrono::hours(1))});
  EXPECT_EQ(child_late.process.output.text(), "main\nchild\n");
  EXPECT_GE(child_late.trace->controlled->virtual_time, std::chrono::hours(1));
  EXPECT_GE(child_late.trace->interventions[0].added, std::chrono::hours(1));
  const ExperimentResult main_late = control(order_, {delay(main_begins_, std::chrono::hours(1))});
  EXPECT_EQ(main_late.process.output.text(), "child\nmain\n");
}

TEST_F(ControlledActions, The_same_plan_gives_the_same_run) {
  const auto digest = [&] {
    return control(order_, {delay(child_begins_, milliseconds(20))}).trace->controlled->digest;
  };
  const uint64_t first = digest();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(digest(), first);
}

TEST_F(ControlledActions, A_held_thread_waits_for_the_other_one_while_time_passes) {
  const ExperimentResult one =
      control(order_, {is_done(profile_.trace->threads[0].name), hold(child_begins_, 0, bound),
                       delay(main_begins_, seconds(20))});
  EXPECT_EQ(one.process.output.text(), "main\nchild\n");
  EXPECT_EQ(one.trace->interventions[1].fired, 1u);
  EXPECT_EQ(one.trace->interventions[1].let_go + one.trace->interventions[1].impossible, 0u);
  EXPECT_GE(one.trace->interventions[1].added, seconds(20));
  const ExperimentResult two =
      control(order_, {is_done(other_thread(profile_)), hold(main_begins_, 0, bound)});
  EXPECT_EQ(two.process.output.text(), "child\nmain\n");
}

TEST_F(ControlledActions, A_hold_lets_go_when_its_time_has_passed) {
  const ExperimentResult result =
      control(order_, {is_done(profile_.trace->threads[0].name), hold(child_begins_, 0, bound),
                       delay(main_begins_, 2 * bound)});
  EXPECT_EQ(result.process.output.text(), "child\nmain\n");
  EXPECT_EQ(result.trace->interventions[1].let_go, 1u);
}

TEST_F(ControlledActions, A_hold_that_nobody_can_end_is_given_up_before_time_passes) {
  const ExperimentResult result =
      control(order_, {is_done({"nobody", 12345, 12345}), hold(main_begins_, 0, bound)});
  EXPECT_EQ(result.trace->interventions[1].impossible, 1u);
  EXPECT_LT(result.trace->controlled->virtual_time, bound);
}

TEST_F(ControlledActions, The_woken_side_of_a_wait_is_late_without_the_mutex) {
  AgentRuns runs({"plans", "woken"});
  const Intervention main_locks = at(runs.profile(), "woken", "pthread_mutex_lock");
  const auto profile = profile_with(runs, "wait_until_ready", "pthread_cond_wait",
                                    delay(main_locks, milliseconds(100)));
  const Intervention waits = at(profile, "wait_until_ready", "pthread_cond_wait");
  Intervention woken = hold(waits, 0, bound);
  woken.position = Intervention::Position::after;
  const ExperimentResult result = control(runs, {watch(at(profile, "second_step", "usleep")), woken,
                                                 watch(waits), hold(main_locks, 2, bound)});
  for (const size_t held : {1u, 3u}) {
    EXPECT_EQ(result.trace->interventions[held].fired, 1u);
    EXPECT_EQ(result.trace->interventions[held].let_go, 0u);
    EXPECT_EQ(result.trace->interventions[held].impossible, 0u);
  }
}

TEST_F(ControlledActions, The_exit_waits_for_a_thread_that_was_made_late) {
  AgentRuns runs({"plans", "leave"});
  const Intervention main_leaves = at(runs.profile(), "second_step", "usleep");
  const auto profile =
      profile_with(runs, "first_step", "usleep", delay(main_leaves, milliseconds(100)));
  const Intervention late = delay(at(profile, "first_step", "usleep"), milliseconds(100));
  const ExperimentResult result = control(runs, {watch(late), hold(main_leaves, 0, bound), late});
  EXPECT_EQ(result.process.output.text(), "late\n");
}

}  // namespace
}  // namespace unflake
