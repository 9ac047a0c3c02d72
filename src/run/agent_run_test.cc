#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "repro/relocation.h"
#include "run/local_executor.h"
#include "trace/program_code.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

class AgentRuns : public testing::Test {
 protected:
  AgentRuns() {
    test_->id = {"handover", "Uses_a_pool"};
    test_->framework = Framework::gtest;
    test_->command.argv = {UNFLAKE_FIXTURES "/handover", "--gtest_filter=Handover.Uses_a_pool"};
    profile_.agent = profile_.calls = profile_.stacks = true;
  }

  ExperimentResult run(const Plan& plan) {
    auto result = executor_->run({test_, plan, 60s, false});
    EXPECT_TRUE(result);
    return result ? std::move(*result) : ExperimentResult();
  }

  std::vector<std::string> sites_of(const ExperimentResult& result) {
    std::vector<std::string> names;
    for (const TracedSite& site : result.trace->sites) names.push_back(to_string(site.name));
    return names;
  }

  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_ = std::move(*LocalExecutor::create({}, interrupts_));
  std::shared_ptr<unflake::Test> test_ = std::make_shared<unflake::Test>();
  Plan profile_;
};

TEST_F(AgentRuns, A_plain_run_has_no_trace) {
  EXPECT_EQ(run({}).trace, nullptr);
}

TEST_F(AgentRuns, A_run_under_the_agent_shows_its_threads_and_sites) {
  const ExperimentResult result = run(profile_);
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  ASSERT_TRUE(result.trace);
  EXPECT_EQ(result.trace->threads.size(), 4u);
  EXPECT_THAT(sites_of(result), Contains("handover.cc:17:pthread_mutex_lock"));
  EXPECT_TRUE(result.trace->problems.empty());
}

TEST_F(AgentRuns, Names_are_the_same_in_every_run) {
  const ExperimentResult first = run(profile_), second = run(profile_);
  EXPECT_EQ(sites_of(first), sites_of(second));
  ASSERT_EQ(first.trace->threads.size(), second.trace->threads.size());
  std::vector<std::string> names[2];
  for (const TracedThread& thread : first.trace->threads) names[0].push_back(thread.name.text);
  for (const TracedThread& thread : second.trace->threads) names[1].push_back(thread.name.text);
  EXPECT_THAT(names[1], testing::UnorderedElementsAreArray(names[0]));
}

TEST_F(AgentRuns, A_plan_acts_on_what_an_earlier_run_has_shown) {
  const ExperimentResult first = run(profile_);
  Plan plan;
  plan.agent = true;
  Intervention delay;
  delay.site = *parse_site("handover.cc:17:pthread_mutex_lock");
  delay.duration = 1ms;
  plan.interventions = {delay};
  const ExperimentResult result = run(plan);
  ASSERT_EQ(result.trace->interventions.size(), 1u);
  EXPECT_EQ(result.trace->interventions[0].fired, 3u);
  EXPECT_GE(result.trace->interventions[0].added, Duration(3ms));
}

TEST_F(AgentRuns, Sites_and_threads_are_described_by_their_source_and_found_by_it) {
  const ExperimentResult profile = run(profile_);
  const CodeView code = program_code(*profile.trace, {});
  Repro repro;
  for (const char* site : {"handover.cc:17:pthread_mutex_lock", "handover.cc:18", "Box::put()"}) {
    Intervention delay;
    delay.site = *parse_site(site);
    delay.threads = Intervention::Threads::named;
    delay.thread.text = "handover.cc:56#2";
    repro.plan.interventions.push_back(delay);
  }
  repro.failure = {FailureKind::assertion, "handover.cc", 58, "", "", ""};
  describe_sites(repro, *profile.trace, code);
  EXPECT_EQ(repro.sites[0], (SiteContext{"(anonymous namespace)::Box::put", 1,
                                         "const std::lock_guard lock(mutex_);",
                                         "void put(int value) {", "value_ = value;"}));
  EXPECT_EQ(repro.sites[1].text, "value_ = value;");
  EXPECT_EQ(repro.sites[2].text, "void put(int value) {");
  EXPECT_THAT(repro.spawns[0].text, HasSubstr("pool.emplace_back"));
  EXPECT_THAT(repro.spawns[0].function, HasSubstr("Handover_Uses_a_pool_Test::TestBody"));
  EXPECT_EQ(repro.failing_line.text, "EXPECT_NE(box.look(), 0);");

  const Relocation same = relocate(repro, *profile.trace, code);
  EXPECT_TRUE(same.notes.empty());
  EXPECT_NE(same.plan.interventions[0].thread.name, 0u);

  repro.plan.interventions[0].site.line = 7;  // as if ten lines had been inserted since
  repro.plan.interventions[1].site.line = 8;
  for (Intervention& delay : repro.plan.interventions) delay.thread.text = "handover.cc:46#2";
  const Relocation moved = relocate(repro, *profile.trace, code);
  EXPECT_TRUE(moved.is_complete());
  EXPECT_EQ(to_string(moved.plan.interventions[0].site), "handover.cc:17:pthread_mutex_lock");
  EXPECT_EQ(to_string(moved.plan.interventions[1].site), "handover.cc:18");
  EXPECT_EQ(moved.plan.interventions[2].thread.text, "handover.cc:56#2");
}

TEST_F(AgentRuns, A_plan_with_an_unknown_site_is_not_started_and_says_why) {
  Plan plan = profile_;
  Intervention delay;
  delay.site = *parse_site("handover.cc:99:read");
  plan.interventions = {delay};
  const ExperimentResult result = run(plan);
  EXPECT_EQ(result.process.end, ProcessResult::End::not_started);
  EXPECT_THAT(result.process.error, HasSubstr("handover.cc:99:read"));
  EXPECT_EQ(executor_->free_slots(), 1u);
}

TEST_F(AgentRuns, A_time_out_tells_where_the_threads_were) {
  test_->command.argv[1] = "--gtest_filter=Handover.Waits_for_ever";
  const auto result = executor_->run({test_, {}, 500ms, false});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome.kind, OutcomeKind::timeout);
  EXPECT_THAT(result->outcome.failures[0].function, HasSubstr("Box::wait"));
  EXPECT_EQ(result->outcome.failures[0].line, 23);
}

}  // namespace
}  // namespace unflake
