#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "agent_runs.h"

namespace unflake {
namespace {

std::multiset<std::string> titles_in(const Trace& trace) {
  std::multiset<std::string> titles;
  for (const TracedThread& thread : trace.threads) titles.insert(thread.title);
  return titles;
}

TEST(AgentTitles, Are_what_the_program_calls_its_threads) {
  const ExperimentResult result = AgentRuns({"crowded", "names"}).profile();
  EXPECT_THAT(
      titles_in(*result.trace),
      testing::UnorderedElementsAre("", "by itself", "a name that is ", "by its creator", ""));
}

TEST(AgentTitles, Change_no_identity) {
  const ExperimentResult result = AgentRuns({"crowded", "names"}).profile();
  for (const TracedThread& thread : result.trace->threads)
    EXPECT_EQ(thread.name.text.find("by "), std::string::npos) << thread.name.text;
}

std::vector<const TracedCall*> calls_at(const Trace& trace, const std::string& function,
                                        const std::string& api) {
  std::vector<const TracedCall*> calls;
  for (const TracedCall& call : trace.calls) {
    const SiteName& site = trace.sites[call.site].name;
    if (site.api == api && site.function.find(function) != std::string::npos)
      calls.push_back(&call);
  }
  return calls;
}

TEST(AgentBursts, Are_recorded_at_both_ends_and_counted) {
  const ExperimentResult result = AgentRuns({"crowded", "burst"}).profile();
  const Trace& trace = *result.trace;
  EXPECT_TRUE(trace.drops.empty());
  const auto locks = calls_at(trace, "repeat", "pthread_mutex_lock");
  EXPECT_GE(locks.size(), 1000u);
  EXPECT_GT(trace.calls_left_out, 100'000u);
  const auto counted = std::ranges::find_if(
      trace.visits, [](const TracedVisits& visits) { return visits.visits == 60'000; });
  EXPECT_NE(counted, trace.visits.end());
}

// Whatever repeats itself, what somebody waits for is there.
TEST(AgentBursts, Hide_nothing_that_comes_after_them) {
  const ExperimentResult result = AgentRuns({"crowded", "burst"}).profile();
  EXPECT_EQ(calls_at(*result.trace, "announce", "pthread_cond_broadcast").size(), 1u);
  const auto locks = calls_at(*result.trace, "repeat", "pthread_mutex_lock");
  const auto after = calls_at(*result.trace, "announce", "pthread_mutex_lock");
  ASSERT_EQ(after.size(), 1u);
  ASSERT_FALSE(locks.empty());
  EXPECT_EQ(locks.back() + 2, after.back());  // its own unlock is between them
}

}  // namespace
}  // namespace unflake
