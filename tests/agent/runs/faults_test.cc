#include <cstdlib>

#include "agent_runs.h"

namespace unflake {
namespace {

// Every one of the first calls that the agent makes to the kernel fails once. Whatever it cannot do
// then, the test must not notice, and the report must say.
TEST(AgentFaults, A_system_call_that_fails_costs_the_agent_something_and_the_test_nothing) {
  ::setenv("UNFLAKE_AGENT_LIBRARY", UNFLAKE_FAILING_AGENT, 1);
  AgentRuns runs({"pool_O2"});
  const std::string expected = runs.run({}).process.output.text();
  const Intervention site = at(runs.profile(), "Pool::push", "pthread_mutex_lock");
  Intervention late = delay(site, std::chrono::microseconds(100));
  late.visits = Intervention::Visits::only_nth;
  Plan plan = AgentRuns::recording();
  plan.interventions = {late};
  int complete = 0;
  for (int call = 1; call <= 60; ++call) {
    ::setenv("UNFLAKE_FAILING_CALL", std::to_string(call).c_str(), 1);
    const ExperimentResult result = runs.run(plan);
    EXPECT_EQ(result.process.output.text(), expected) << "call " << call;
    const Trace& trace = *result.trace;
    const bool is_silent = trace.processes.empty() && trace.problems.empty();
    EXPECT_FALSE(is_silent) << "call " << call;
    if (trace.interventions[0].fired == 1 && trace.threads.size() == 8) ++complete;
  }
  EXPECT_GT(complete, 0);
  ::unsetenv("UNFLAKE_FAILING_CALL");
  ::unsetenv("UNFLAKE_AGENT_LIBRARY");
}

}  // namespace
}  // namespace unflake
