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

TEST(OddTimes, A_sleep_of_whole_seconds_that_is_interrupted_again_and_again_ends) {
  AgentRuns runs({"odd_times", "interrupted_seconds", "0"});
  const ExperimentResult known = runs.profile();
  runs.pass({"interrupted_seconds", "2000"});
  const Intervention change = scaled(at(known, "sleep_for_the_rest", "sleep"), 250ms);
  EXPECT_EQ(runs.intervene({change}).process.output.text(), "ended\n");
}

}  // namespace
}  // namespace unflake
