#include <random>

#include "agent_runs.h"

namespace unflake {
namespace {

using std::chrono::microseconds;

// Plans that nobody would think of, over all that a profile run has shown.
class RandomPlans {
 public:
  RandomPlans(const Trace& profile, uint64_t seed) : profile_(profile), random_(seed) {}

  Plan next() {
    Plan plan = below(2) == 0 ? AgentRuns::watching() : AgentRuns::recording();
    plan.system_calls = below(4) == 0;
    plan.functions = below(4) == 0;
    const size_t count = 1 + below(6);
    for (size_t i = 0; i < count; ++i) plan.interventions.push_back(intervention(count));
    return plan;
  }

 private:
  size_t below(size_t bound) { return random_() % bound; }

  Intervention intervention(size_t count) {
    const TracedSite& site = profile_.sites[below(profile_.sites.size())];
    Intervention what;
    what.site = site.name;
    what.action = static_cast<Intervention::Action>(below(2));  // delay or hold
    if (below(4) == 0) what.action = Intervention::Action::watch;
    what.position = below(2) == 0 ? Intervention::Position::before : Intervention::Position::after;
    if (site.name.api == "pthread_create" && below(2) == 0)
      what.position = Intervention::Position::start;
    what.threads = static_cast<Intervention::Threads>(below(3));
    what.thread = profile_.threads[below(profile_.threads.size())].name;
    what.duration = microseconds(below(1500));
    what.visits = static_cast<Intervention::Visits>(below(4));
    what.nth = 1 + below(5);
    what.count = 1 + below(3);
    if (below(4) == 0) what.anchor = below(count);
    what.until = below(count);
    if (below(4) == 0) at_line_or_function(what);
    return what;
  }

  // The same place as a probe.
  void at_line_or_function(Intervention& what) {
    what.site.api.clear();
    what.site.nth = 1;
    what.position = Intervention::Position::before;
  }

  const Trace& profile_;
  std::mt19937_64 random_;
};

class AnyPlan : public testing::TestWithParam<const char*> {};

TEST_P(AnyPlan, Changes_nothing_but_time_in_a_program_without_races) {
  AgentRuns runs({GetParam()});
  const std::string expected = runs.run({}).process.output.text();
  const ExperimentResult profile = runs.profile();
  ASSERT_FALSE(profile.trace->sites.empty());
  int runs_made = 0;
  for (uint64_t seed = 1; runs_made < 12 && seed <= 100; ++seed) {
    const Plan plan = RandomPlans(*profile.trace, seed).next();
    const ExperimentResult result = runs.run(plan);
    // Some names are of no line or function, or two of the same instruction.
    if (result.process.end == ProcessResult::End::not_started) continue;
    EXPECT_EQ(result.process.output.text(), expected) << "seed " << seed;
    EXPECT_EQ(result.outcome.kind, OutcomeKind::pass) << "seed " << seed;
    ++runs_made;
  }
  EXPECT_EQ(runs_made, 12);
}

INSTANTIATE_TEST_SUITE_P(, AnyPlan,
                         testing::Values("pool_O0", "pool_O2", "pool_O3_lto", "pool_clang_O2",
                                         "pool_asan", "pool_tsan"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace unflake
