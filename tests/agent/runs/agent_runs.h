#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "run/local_executor.h"

namespace unflake {

inline std::string agent_fixture(const std::string& name) {
  return std::string(UNFLAKE_AGENT_FIXTURES) + "/" + name;
}

// Runs one program under the agent, as often as a test wants; what one run has shown can be named
// in the plan of the next.
class AgentRuns {
 public:
  explicit AgentRuns(std::vector<std::string> argv, ProjectCodeRules rules = {}) {
    LocalOptions options;
    options.project_code = std::move(rules);
    auto executor = LocalExecutor::create(options, interrupts_);
    if (executor) executor_ = std::move(*executor);
    auto test = std::make_shared<unflake::Test>();
    test->id = {argv[0], "run"};
    argv[0] = argv[0].starts_with('/') ? argv[0] : agent_fixture(argv[0]);
    test->command.argv = std::move(argv);
    test_ = test;
  }

  ExperimentResult run(const Plan& plan, Duration timeout = std::chrono::seconds(60)) {
    const bool fork_server = std::getenv("UNFLAKE_TEST_FORK_SERVER") != nullptr;
    Experiment experiment{test_, plan, timeout, false, fork_server};
    auto result = executor_->run(experiment);
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? std::move(*result) : ExperimentResult{};
  }

  // The same test from now on with other arguments: what was learnt of it stays.
  void pass(const std::vector<std::string>& arguments) {
    auto test = std::make_shared<unflake::Test>(*test_);
    test->command.argv.resize(1);
    test->command.argv.insert(test->command.argv.end(), arguments.begin(), arguments.end());
    test_ = test;
  }

  // With everything recorded and nothing changed.
  ExperimentResult profile() { return run(recording()); }

  ExperimentResult intervene(std::vector<Intervention> interventions) {
    Plan plan = watching();
    plan.interventions = std::move(interventions);
    return run(plan);
  }

  static Plan recording() {
    Plan plan = watching();
    plan.calls = plan.stacks = true;
    return plan;
  }

  static Plan watching() {
    Plan plan;
    plan.id = "test";
    plan.agent = true;
    return plan;
  }

 private:
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_;
  std::shared_ptr<const unflake::Test> test_;
};

inline const TracedSite* find_site(const Trace& trace, const std::string& function,
                                   const std::string& api) {
  for (const TracedSite& site : trace.sites)
    if (site.name.api == api && site.name.function == function) return &site;
  return nullptr;
}

// An intervention at the only call of this API in this function; a test failure when there is none.
inline Intervention at(const ExperimentResult& profile, const std::string& function,
                       const std::string& api) {
  Intervention intervention;
  const TracedSite* site = find_site(*profile.trace, function, api);
  EXPECT_NE(site, nullptr) << "no " << api << " in " << function;
  if (site != nullptr) intervention.site = site->name;
  return intervention;
}

inline Intervention delay(Intervention intervention, Duration duration) {
  intervention.action = Intervention::Action::delay;
  intervention.duration = duration;
  return intervention;
}

inline Intervention watch(Intervention intervention) {
  intervention.action = Intervention::Action::watch;
  return intervention;
}

inline Intervention hold(Intervention intervention, size_t until, Duration bound) {
  intervention.action = Intervention::Action::hold;
  intervention.until = until;
  intervention.duration = bound;
  return intervention;
}

}  // namespace unflake
