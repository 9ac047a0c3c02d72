#include "agent_runs.h"

namespace unflake {
namespace {

class AgentCompatibility : public testing::TestWithParam<const char*> {};

TEST_P(AgentCompatibility, The_program_behaves_the_same_and_its_threads_are_seen) {
  AgentRuns runs({GetParam()});
  const ExperimentResult plain = runs.run({});
  const ExperimentResult traced = runs.profile();
  EXPECT_EQ(plain.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(traced.outcome.kind, OutcomeKind::pass) << whole_output(traced.process);
  EXPECT_EQ(traced.process.output.text(), plain.process.output.text());
  EXPECT_GE(traced.trace->threads.size(), 8u);  // a sanitizer may have one of its own
  for (const TracedProcess& process : traced.trace->processes)
    EXPECT_TRUE(process.degraded.empty()) << process.degraded.front();
}

TEST_P(AgentCompatibility, A_thread_can_be_made_late) {
  AgentRuns runs({GetParam()});
  const ExperimentResult plain = runs.run({});
  const ExperimentResult profile = runs.profile();
  const TracedSite* wait = nullptr;
  for (const TracedSite& site : profile.trace->sites)
    if (site.name.api == "pthread_create") wait = &site;
  ASSERT_NE(wait, nullptr);
  Intervention late;
  late.site = wait->name;
  late.position = Intervention::Position::start;
  const ExperimentResult result = runs.intervene({delay(late, std::chrono::milliseconds(2))});
  EXPECT_EQ(result.process.output.text(), plain.process.output.text());
  EXPECT_GE(result.trace->interventions[0].fired, 1u);
}

INSTANTIATE_TEST_SUITE_P(, AgentCompatibility,
                         testing::Values("pool_O0", "pool_O2", "pool_O3_lto", "pool_no_pie",
                                         "pool_split_dwarf", "pool_stripped", "pool_asan",
                                         "pool_tsan", "pool_ubsan", "pool_clang_O0",
                                         "pool_clang_O2", "pool_clang_asan", "pool_clang_tsan",
                                         "pool_clang_ubsan"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace unflake
