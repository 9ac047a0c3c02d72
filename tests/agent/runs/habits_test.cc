#include <csignal>
#include <map>

#include "agent_runs.h"

namespace unflake {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AgentHabits, A_thread_may_free_the_handle_that_its_creator_has_asked_for) {
  EXPECT_EQ(AgentRuns({"habits", "handle"}).profile().outcome.kind, OutcomeKind::pass);
}

TEST(AgentHabits, A_forbidden_system_call_is_deadly) {
  const ExperimentResult result = AgentRuns({"habits", "filter"}).profile();
  EXPECT_EQ(result.outcome.kind, OutcomeKind::crash);
  EXPECT_EQ(result.process.code, SIGSYS);
}

TEST(AgentHabits, A_worker_that_is_made_late_again_and_again_does_not_hold_the_exit_forever) {
  AgentRuns runs({"habits", "worker"});
  const ExperimentResult profile = runs.profile();
  const ExperimentResult result =
      runs.intervene({delay(at(profile, "work_forever", "usleep"), milliseconds(5))});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
}

TEST(AgentHabits, A_thread_that_jumps_out_of_a_delay_is_seen_at_deeper_calls) {
  AgentRuns runs({"habits", "jump"});
  const ExperimentResult profile = runs.profile();
  const ExperimentResult result =
      runs.intervene({delay(at(profile, "nap", "usleep"), seconds(30))});
  EXPECT_NE(find_site(*result.trace, "look_around", "access"), nullptr);
}

TEST(AgentHabits, An_alarm_with_no_time_left_comes_at_once) {
  AgentRuns runs({"habits", "alarm"});
  const ExperimentResult profile = runs.profile();
  Intervention at_once = at(profile, "set_alarm", "alarm");
  at_once.action = Intervention::Action::replace_time;
  at_once.duration = milliseconds(0);
  EXPECT_EQ(runs.intervene({at_once}).outcome.kind, OutcomeKind::pass);
}

TEST(AgentHabits, What_a_timer_calls_can_have_a_probe) {
  AgentRuns runs({"habits", "timer"});
  Intervention called;
  called.site.function = "count_call";
  const ExperimentResult result = runs.intervene({watch(called)});
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.trace->interventions[0].visits, 1u);
}

TEST(AgentHabits, A_malloc_that_locks_may_be_the_programs_own) {
  EXPECT_EQ(AgentRuns({"own_malloc"}).profile().process.output.text(), "done\n");
}

TEST(AgentHabits, A_plugin_of_a_C_program_may_throw) {
  AgentRuns runs({"loads_plugins", agent_fixture("libthrowing.so")});
  EXPECT_EQ(runs.profile().outcome.kind, OutcomeKind::pass);
}

TEST(AgentHabits, Plugins_that_come_to_one_address_are_told_apart) {
  AgentRuns runs({"loads_plugins", agent_fixture("libfirst_napping.so"),
                  agent_fixture("libsecond_napping.so"), agent_fixture("libfirst_napping.so")});
  const ExperimentResult profile = runs.profile();
  std::map<std::string, uint64_t> naps;
  for (const TracedVisits& visits : profile.trace->visits)
    naps[profile.trace->sites.at(visits.site).name.image] += visits.visits;
  EXPECT_EQ(naps["libfirst_napping.so"], 2u);
  EXPECT_EQ(naps["libsecond_napping.so"], 1u);
}

}  // namespace
}  // namespace unflake
