#include <algorithm>
#include <set>

#include "agent_runs.h"
#include "protocol/agent_protocol.h"

namespace unflake {
namespace {

TEST(AgentHooks, Every_timing_api_is_seen_and_returns_what_it_would_without_the_agent) {
  AgentRuns runs({"every_api"});
  const ExperimentResult result = runs.profile();
  EXPECT_EQ(result.process.output.text(), "every call returned what it should\n");
  std::set<std::string> seen;
  for (const TracedSite& site : result.trace->sites) seen.insert(site.name.api);
  for (const protocol::ApiFacts& api : protocol::api_facts)
    EXPECT_TRUE(seen.contains(api.name)) << api.name;
  EXPECT_TRUE(result.trace->drops.empty());
}

TEST(AgentHooks, An_event_tells_what_was_called_how_long_it_took_and_how_it_ended) {
  AgentRuns runs({"plans", "visits"});
  const ExperimentResult result = runs.profile();
  const TracedSite* site = find_site(*result.trace, "visit_often", "usleep");
  ASSERT_NE(site, nullptr);
  int sleeps = 0;
  for (const TracedCall& event : result.trace->calls) {
    if (&result.trace->sites[event.site] != site) continue;
    ++sleeps;
    EXPECT_EQ(event.value, 1000);
    EXPECT_TRUE(event.timed_out);
    EXPECT_GE(event.exit - event.enter, std::chrono::microseconds(1));
  }
  EXPECT_EQ(sleeps, 6);
}

TEST(AgentHooks, A_call_that_the_standard_library_makes_belongs_to_the_line_that_asked_for_it) {
  AgentRuns runs({"pool_O2"});
  const ExperimentResult result = runs.profile();
  EXPECT_NE(find_site(*result.trace, "Pool::Pool", "pthread_create"), nullptr);
  EXPECT_NE(find_site(*result.trace, "Pool::push", "pthread_mutex_lock"), nullptr);
}

TEST(AgentHooks, What_the_standard_library_compiled_into_the_program_is_no_site_of_its_own) {
  AgentRuns runs({"pool_O0"});
  runs.profile();  // shows which images there are
  const ExperimentResult result = runs.profile();
  EXPECT_NE(find_site(*result.trace, "Pool::push", "pthread_mutex_lock"), nullptr);
  for (const TracedSite& site : result.trace->sites)
    EXPECT_FALSE(site.name.function.starts_with("std::")) << to_string(site.name);
}

TEST(AgentHooks, Without_events_visits_and_waits_are_counted_all_the_same) {
  AgentRuns runs({"plans", "visits"});
  const ExperimentResult result = runs.run(AgentRuns::watching());
  ASSERT_TRUE(result.trace->calls.empty());
  const TracedSite* site = find_site(*result.trace, "visit_often", "usleep");
  ASSERT_NE(site, nullptr);
  const auto visits =
      std::find_if(result.trace->visits.begin(), result.trace->visits.end(),
                   [&](const TracedVisits& v) { return &result.trace->sites[v.site] == site; });
  ASSERT_NE(visits, result.trace->visits.end());
  EXPECT_EQ(visits->visits, 6u);
  EXPECT_GE(visits->waited, std::chrono::microseconds(6));
}

ProjectCodeRules rules_with_system_folder() {
  return {"", {}, {agent_fixture("system")}};
}

TEST(AgentHooks, What_a_system_library_calls_for_itself_passes_untouched_unless_asked_for) {
  AgentRuns runs({"uses_library"}, rules_with_system_folder());
  const auto locks = [](const ExperimentResult& result) {
    return std::ranges::count_if(result.trace->sites, [](const TracedSite& site) {
      return site.name.api == "pthread_mutex_lock";
    });
  };
  const ExperimentResult quiet = runs.profile();
  EXPECT_EQ(locks(quiet), 0);
  EXPECT_NE(find_site(*quiet.trace, "work", "usleep"), nullptr);
  Plan plan = AgentRuns::recording();
  plan.system_calls = true;
  EXPECT_EQ(locks(runs.run(plan)), 1);
}

TEST(AgentHooks, A_site_has_the_same_name_in_every_build_of_the_same_source) {
  const auto names = [](const char* program) {
    AgentRuns runs({program});
    const ExperimentResult result = runs.profile();
    std::set<std::string> found;
    for (const TracedSite& site : result.trace->sites)
      if (site.name.function == "Pool::push" || site.name.function == "Pool::Pool")
        found.insert(to_string(site.name));
    return found;
  };
  const std::set<std::string> unoptimised = names("pool_O0");
  EXPECT_GE(unoptimised.size(), 3u);
  EXPECT_EQ(names("pool_O2"), unoptimised);
  EXPECT_EQ(names("pool_no_pie"), unoptimised);
}

TEST(AgentHooks, A_group_that_is_switched_off_has_no_sites) {
  AgentRuns runs({"plans", "visits"});
  Plan plan = AgentRuns::watching();
  plan.groups_off = {"sleep"};
  EXPECT_EQ(find_site(*runs.run(plan).trace, "visit_often", "usleep"), nullptr);
}

}  // namespace
}  // namespace unflake
