#include <algorithm>

#include "agent_runs.h"

namespace unflake {
namespace {

std::vector<std::string> process_names(const Trace& trace) {
  std::vector<std::string> names;
  for (const TracedProcess& process : trace.processes) names.push_back(process.name);
  return names;
}

const TracedSite* site_in(const Trace& trace, const std::string& image, const std::string& api) {
  for (const TracedSite& site : trace.sites)
    if (site.name.image == image && site.name.api == api) return &site;
  return nullptr;
}

TEST(AgentProcesses, A_program_that_a_script_starts_is_followed_and_its_sites_name_it) {
  AgentRuns runs({"/bin/sh", "-c", agent_fixture("plans") + " visits; exit 0"});
  const ExperimentResult result = runs.profile();
  EXPECT_THAT(process_names(*result.trace), testing::Contains("plans"));
  EXPECT_NE(site_in(*result.trace, "plans", "usleep"), nullptr);
}

TEST(AgentProcesses, A_thread_of_a_program_that_a_script_starts_can_be_made_late) {
  AgentRuns runs({"/bin/sh", "-c", agent_fixture("plans") + " visits; exit 0"});
  const ExperimentResult profile = runs.profile();
  const TracedSite* site = site_in(*profile.trace, "plans", "usleep");
  ASSERT_NE(site, nullptr);
  Intervention late;
  late.site = site->name;
  const auto result = runs.intervene({delay(late, std::chrono::milliseconds(1))});
  EXPECT_EQ(result.trace->interventions[0].fired, 6u);
}

TEST(AgentProcesses, A_child_that_gets_an_empty_environment_is_followed) {
  AgentRuns runs({"/usr/bin/env", "-i", agent_fixture("plans"), "visits"});
  EXPECT_THAT(process_names(*runs.profile().trace), testing::Contains("plans"));
}

TEST(AgentProcesses, A_statically_linked_program_is_refused_with_the_reason) {
  AgentRuns runs({"static_agent_program"});
  const ExperimentResult result = runs.run(AgentRuns::watching());
  EXPECT_EQ(result.process.end, ProcessResult::End::not_started);
  EXPECT_THAT(result.process.error, testing::HasSubstr("linked statically"));
}

}  // namespace
}  // namespace unflake
