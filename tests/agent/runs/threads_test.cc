#include <algorithm>
#include <map>
#include <set>

#include "agent_runs.h"

namespace unflake {
namespace {

std::multiset<uint64_t> names_in(const Trace& trace) {
  std::multiset<uint64_t> names;
  for (const TracedThread& thread : trace.threads) names.insert(thread.name.name);
  return names;
}

std::multiset<std::string> texts_in(const Trace& trace) {
  std::multiset<std::string> texts;
  for (const TracedThread& thread : trace.threads) texts.insert(thread.name.text);
  return texts;
}

TEST(AgentThreads, Names_are_the_same_in_every_run) {
  AgentRuns runs({"pool_O2"});
  const ExperimentResult one = runs.profile();
  const ExperimentResult two = runs.profile();
  EXPECT_EQ(names_in(*one.trace), names_in(*two.trace));
  EXPECT_EQ(texts_in(*one.trace), texts_in(*two.trace));
}

TEST(AgentThreads, Every_thread_has_a_name_of_its_own) {
  const ExperimentResult result = AgentRuns({"pool_O2"}).profile();
  const auto names = names_in(*result.trace);
  EXPECT_EQ(std::set<uint64_t>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), 8u);  // main, 3 workers, async, detached, the child and its thread
}

TEST(AgentThreads, The_first_thread_is_main) {
  const ExperimentResult result = AgentRuns({"pool_O2"}).profile();
  ASSERT_FALSE(result.trace->threads.empty());
  EXPECT_EQ(result.trace->threads[0].name.text, "main");
}

TEST(AgentThreads, Workers_of_one_pool_share_a_class_and_differ_in_number) {
  const ExperimentResult result = AgentRuns({"pool_O2"}).profile();
  std::map<uint64_t, int> sizes;
  for (const TracedThread& thread : result.trace->threads) ++sizes[thread.name.thread_class];
  EXPECT_EQ(std::count_if(sizes.begin(), sizes.end(), [](const auto& s) { return s.second == 3; }),
            1);
}

TEST(AgentThreads, A_forked_child_is_a_process_with_threads_of_its_own) {
  const ExperimentResult result = AgentRuns({"pool_O2"}).profile();
  ASSERT_EQ(result.trace->processes.size(), 2u);
  EXPECT_EQ(result.trace->processes[1].parent, 0u);
  const auto in_child =
      std::count_if(result.trace->threads.begin(), result.trace->threads.end(),
                    [](const TracedThread& thread) { return thread.process == 1; });
  EXPECT_EQ(in_child, 2);
}

}  // namespace
}  // namespace unflake
