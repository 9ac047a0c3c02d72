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

TEST(OddTimes, The_time_outs_of_a_sockets_two_directions_are_not_confused) {
  const ExperimentResult profile = AgentRuns({"odd_times", "both_timeouts"}).profile();
  const TimeValue receive = value_at(profile, "set_receive_timeout", "setsockopt");
  EXPECT_EQ(receive.least, 20ms);
  EXPECT_EQ(receive.use(), TimeUse::wait);
  const TimeValue send = value_at(profile, "set_send_timeout", "setsockopt");
  EXPECT_EQ(send.least, 7s);
  EXPECT_EQ(send.use(), TimeUse::not_seen);
}

}  // namespace
}  // namespace unflake
