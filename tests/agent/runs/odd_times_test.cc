#include <algorithm>

#include "agent_runs.h"
#include "trace/time_values.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

// What is asked for at the only call of this API in this function.
TimeValue value_at(const ExperimentResult& profile, const char* function, const char* api) {
  const Trace* const runs[] = {&*profile.trace};
  for (const TimeValue& value : time_values(runs))
    if (value.site.function == function && value.site.api == api) return value;
  ADD_FAILURE() << "no time of " << api << " in " << function;
  return {};
}

Intervention scaled(Intervention intervention, Duration second) {
  intervention.action = Intervention::Action::scale_time;
  intervention.duration = second;
  return intervention;
}

TEST(OddTimes, The_time_outs_of_a_sockets_two_directions_are_not_confused) {
  const ExperimentResult profile = AgentRuns({"odd_times", "both_timeouts"}).profile();
  const TimeValue receive = value_at(profile, "set_receive_timeout", "setsockopt");
  EXPECT_EQ(receive.least, 20ms);
  EXPECT_EQ(receive.use(), TimeUse::wait);
  const TimeValue send = value_at(profile, "set_send_timeout", "setsockopt");
  EXPECT_EQ(send.least, 7s);
  EXPECT_EQ(send.use(), TimeUse::not_seen);
}

TEST(OddTimes, A_wait_that_is_made_again_goes_on_although_another_changed_wait_was_in_between) {
  AgentRuns runs({"odd_times", "pauses", "5"});
  const ExperimentResult known = runs.profile();
  runs.pass({"pauses", "20000"});
  const ExperimentResult result = runs.intervene({
      scaled(at(known, "wait_with_pauses", "pthread_cond_clockwait"), 10ms),
      scaled(at(known, "pause_shortly", "nanosleep"), 500ms),
  });
  EXPECT_EQ(result.process.output.text(), "shorter\n");
}

std::string end_of_a_wait(Duration second, Duration late_by) {
  AgentRuns runs({"odd_times", "somebody", "100"});
  const ExperimentResult known = runs.profile();
  const Intervention wait = at(known, "wait_for_somebody", "pthread_cond_clockwait");
  Intervention late = delay(wait, late_by);
  late.position = Intervention::Position::after;
  return runs.intervene({scaled(wait, second), late}).process.output.text();
}

TEST(OddTimes, A_woken_wait_that_was_made_longer_has_come_although_its_own_time_passes_afterwards) {
  EXPECT_EQ(end_of_a_wait(1000s, 200ms), "came\n");
}

TEST(OddTimes, A_woken_wait_has_timed_out_when_the_thread_is_late_for_longer_than_it_was_made) {
  EXPECT_EQ(end_of_a_wait(2s, 300ms), "timed out\n");
}

TEST(OddTimes, A_sleep_of_whole_seconds_that_is_interrupted_again_and_again_ends) {
  AgentRuns runs({"odd_times", "interrupted_seconds", "0"});
  const ExperimentResult known = runs.profile();
  runs.pass({"interrupted_seconds", "2000"});
  const Intervention change = scaled(at(known, "sleep_for_the_rest", "sleep"), 250ms);
  EXPECT_EQ(runs.intervene({change}).process.output.text(), "ended\n");
}

TEST(OddTimes, A_short_select_does_not_become_a_look) {
  AgentRuns runs({"odd_times", "short_select"});
  const ExperimentResult known = runs.profile();
  for (const Duration second : {250'000us, 1us}) {
    const Intervention change = scaled(at(known, "select_shortly", "select"), second);
    EXPECT_EQ(runs.intervene({change}).process.output.text(), "waits\n");
  }
}

TEST(OddTimes, A_changed_alarm_tells_the_seconds_of_the_one_before_as_the_kernel_does) {
  AgentRuns runs({"odd_times", "alarms"});
  const ExperimentResult known = runs.profile();
  EXPECT_EQ(known.process.output.text(), "100 101 1 ");
  const Intervention change = scaled(at(known, "set_alarm", "alarm"), 900ms);
  EXPECT_EQ(runs.intervene({change}).process.output.text(), "100 101 1 ");
}

TEST(OddTimes, A_changed_timer_is_still_cancelled_when_the_clock_is_set) {
  AgentRuns runs({"odd_times", "clock_set"});
  const ExperimentResult known = runs.profile();
  EXPECT_EQ(known.process.output.text(), "settime flags: 03\nas asked\n");
  const Intervention change =
      scaled(at(known, "arm_until_the_clock_is_set", "timerfd_settime"), 100ms);
  EXPECT_EQ(runs.intervene({change}).process.output.text(), "settime flags: 03\nshorter\n");
}

TEST(OddTimes, An_interval_that_is_scaled_to_nothing_leaves_time_for_the_program) {
  AgentRuns runs({"odd_times", "intervals"});
  const ExperimentResult known = runs.profile();
  EXPECT_EQ(known.process.output.text(), "50000000 100 50000000 50000000 ");
  const ExperimentResult result =
      runs.intervene({scaled(at(known, "interval_of_file", "timerfd_settime"), 0us),
                      scaled(at(known, "interval_of_signal", "timer_settime"), 0us),
                      scaled(at(known, "interval_of_process", "setitimer"), 0us)});
  EXPECT_EQ(result.process.output.text(), "200 100 200 200 ");
}

TEST(OddTimes, An_interval_that_begins_at_once_is_a_time_and_can_be_changed) {
  AgentRuns runs({"odd_times", "intervals_at_once"});
  const ExperimentResult known = runs.profile();
  std::vector<Intervention> changes;
  for (const auto& [function, api] : {std::pair("arm_in_the_past", "timerfd_settime"),
                                      {"arm_at_once", "timerfd_settime"},
                                      {"set_process_timer_at_once", "setitimer"}}) {
    EXPECT_EQ(value_at(known, function, api).least, 5000s);
    changes.push_back(scaled(at(known, function, api), 500ms));
  }
  EXPECT_EQ(runs.intervene(changes).process.output.text(), "2500 2500 2500 ");
  for (Intervention& change : changes) {
    change.action = Intervention::Action::replace_time;
    change.duration = 3000s;
  }
  EXPECT_EQ(runs.intervene(changes).process.output.text(), "3000 3000 3000 ");
}

TEST(OddTimes, The_time_to_receive_several_messages_is_changed) {
  AgentRuns runs({"odd_times", "messages", "1"});
  const ExperimentResult known = runs.profile();
  EXPECT_EQ(value_at(known, "receive_two_messages", "recvmmsg").least, 1ms);
  runs.pass({"messages", "20000"});
  const Intervention change = scaled(at(known, "receive_two_messages", "recvmmsg"), 1us);
  EXPECT_EQ(runs.intervene({change}).process.output.text(), "1 0 0\n");
}

TEST(OddTimes, An_alarm_in_microseconds_is_changed) {
  AgentRuns runs({"odd_times", "microseconds"});
  const ExperimentResult known = runs.profile();
  const TimeValue value = value_at(known, "set_alarm_in_microseconds", "ualarm");
  EXPECT_EQ(value.least, 900ms);
  EXPECT_EQ(value.use(), TimeUse::not_seen);
  const Intervention change = scaled(at(known, "set_alarm_in_microseconds", "ualarm"), 500ms);
  EXPECT_EQ(runs.intervene({change}).process.output.text(), "400000");
}

constexpr struct {
  const char* function;
  const char* api;
} wrong_calls[] = {{"long_nanosleep", "nanosleep"},
                   {"negative_nanosleep", "nanosleep"},
                   {"negative_seconds", "nanosleep"},
                   {"long_clock_nanosleep", "clock_nanosleep"},
                   {"condition_deadline", "pthread_cond_timedwait"},
                   {"long_ppoll", "ppoll"},
                   {"negative_select", "select"},
                   {"receive_timeout", "setsockopt"},
                   {"negative_interval", "setitimer"},
                   {"timer_interval", "timer_settime"},
                   {"timer_file_interval", "timerfd_settime"},
                   {"timer_file_value", "timerfd_settime"}};

constexpr char refusals[] =
    "EINVAL EINVAL EINVAL EINVAL EINVAL EINVAL EINVAL EDOM EINVAL EINVAL EINVAL EINVAL ";

class WrongTimes : public testing::TestWithParam<Intervention::Action> {};

TEST_P(WrongTimes, Are_refused_whatever_is_planned) {
  AgentRuns runs({"odd_times", "wrong"});
  const ExperimentResult known = runs.profile();
  EXPECT_EQ(known.process.output.text(), refusals);
  std::vector<Intervention> changes;
  for (const auto& call : wrong_calls) {
    changes.push_back(scaled(at(known, call.function, call.api), 10ms));
    changes.back().action = GetParam();
  }
  const ExperimentResult result = runs.intervene(changes);
  EXPECT_EQ(result.process.output.text(), refusals);
  for (const TracedIntervention& change : result.trace->interventions) EXPECT_EQ(change.fired, 0u);
}

INSTANTIATE_TEST_SUITE_P(, WrongTimes,
                         testing::Values(Intervention::Action::scale_time,
                                         Intervention::Action::replace_time),
                         [](const auto& info) { return info.index == 0 ? "Scaled" : "Replaced"; });

TEST(OddTimes, Wrong_times_are_no_time_values) {
  const ExperimentResult profile = AgentRuns({"odd_times", "wrong"}).profile();
  const Trace* const runs[] = {&*profile.trace};
  EXPECT_TRUE(time_values(runs).empty());
}

TEST(OddTimes, A_select_may_be_given_more_microseconds_than_a_second_has) {
  const ExperimentResult profile = AgentRuns({"odd_times", "many_microseconds"}).profile();
  EXPECT_EQ(value_at(profile, "select_with_many_microseconds", "select").least, 7s);
}

}  // namespace
}  // namespace unflake
