#include "search/detect/factor_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/scripted_hunt.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

FactorFacts some_machine() {
  using namespace std::chrono;
  return {sys_days(year(2026) / March / 3) + hours(10), 2, {"C", "C.UTF-8"}};
}

using Fails = std::function<bool(const Conditions&)>;

FactorReport factors_of(const Fails& fails_under, const FactorOptions& options = {}) {
  MockExecutor executor(MockExecutor::FullTruth([&](const Experiment& experiment, int) {
    return fails_under(experiment.conditions) ? fails(experiment, 10ms) : passes(experiment, 10ms);
  }));
  EventStream events;
  const auto test = ScriptedHunt::a_test();
  TrialRunner runner(executor, test, events, 24h);
  return look_for_factors(runner, test, factor_levels(some_machine()), options);
}

TEST(FactorLevels, Have_a_level_for_every_factor_and_say_what_is_missing) {
  const FactorLevels all = factor_levels(some_machine());
  std::set<std::string> factors;
  for (const FactorLevel& level : all.levels) factors.insert(level.factor);
  EXPECT_THAT(factors, SizeIs(17));
  EXPECT_THAT(all.not_tried, Contains(Field(&FactorReport::NotTried::factor, "locale")));
}

TEST(FactorLevels, Days_are_those_that_come_next) {
  std::set<std::string> clocks;
  for (const FactorLevel& level : factor_levels(some_machine()).levels)
    clocks.insert(level.conditions.clock);
  for (const char* clock : {"2028-02-29T12:00:00Z", "2026-03-31T12:00:00Z", "2026-12-31T23:59:59Z",
                            "2026-03-07T12:00:00Z", "2026-03-29T00:59:59Z", "2026-10-25T00:30:00Z"})
    EXPECT_THAT(clocks, Contains(clock));
}

TEST(FactorSearch, Asks_for_the_number_of_cores_and_not_for_their_use_alone) {
  const FactorReport report =
      factors_of([](const Conditions& conditions) { return conditions.cores_told == 1; });
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].factor, "number of cores");
}

TEST(FactorSearch, A_test_that_nothing_changes_has_no_cause) {
  const FactorReport report = factors_of([](const Conditions&) { return false; });
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_TRUE(report.is_complete);
  EXPECT_LT(report.runs, 160);
}

TEST(FactorSearch, Names_the_factor_that_makes_it_fail) {
  const FactorReport report = factors_of([](const Conditions& c) { return c.umask == "077"; });
  ASSERT_THAT(report.findings, SizeIs(1));
  const FactorFinding& finding = report.findings.front();
  EXPECT_EQ(finding.factor, "umask");
  EXPECT_EQ(finding.conditions.umask, "077");
  EXPECT_TRUE(finding.fails_under_it());
  EXPECT_EQ(finding.without.hits, 0);
  EXPECT_EQ(finding.failure.file, "scripted.cc");
}

TEST(FactorSearch, Names_the_factor_that_makes_it_pass) {
  const FactorReport report = factors_of([](const Conditions& c) { return c.time_zone != "UTC0"; });
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings.front().factor, "time zone");
  EXPECT_FALSE(report.findings.front().fails_under_it());
}

TEST(FactorSearch, One_factor_of_a_flaky_test_decides) {
  std::mt19937 random(3);
  const FactorReport report = factors_of([&](const Conditions& c) {
    return c.addresses.empty() ? random() % 2 == 0 : c.addresses == "low";
  });
  ASSERT_THAT(report.findings, Contains(Field(&FactorFinding::factor, "address layout")));
  EXPECT_EQ(report.findings.front().factor, "address layout");
}

TEST(FactorSearch, A_test_that_is_flaky_whatever_is_around_it_accuses_nothing) {
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u})
    for (const unsigned of_ten : {1u, 5u, 9u}) {
      std::mt19937 random(seed);
      const FactorReport report =
          factors_of([&](const Conditions&) { return random() % 10 < of_ten; });
      EXPECT_THAT(report.findings, IsEmpty()) << seed << " " << of_ten;
    }
}

TEST(FactorSearch, A_seed_is_compared_with_another_seed) {
  std::mt19937 random(5);
  const FactorReport report = factors_of([&](const Conditions& c) {
    return c.random_seed == 0 ? random() % 4 == 0 : c.random_seed % 4 == 0;
  });
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings.front().factor, "random seed");
  EXPECT_EQ(report.findings.front().conditions.random_seed, 4);
  EXPECT_EQ(report.findings.front().reference.random_seed, 1);
}

TEST(FactorSearch, More_seeds_are_tried_where_the_first_ones_happen_to_end_alike) {
  std::mt19937 random(5);
  const FactorReport report = factors_of(
      [&](const Conditions& c) { return c.hash_seed == 0 ? random() % 2 == 0 : c.hash_seed == 9; });
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings.front().factor, "hash seed");
  EXPECT_EQ(report.findings.front().conditions.hash_seed, 9);
}

TEST(FactorSearch, A_clock_that_may_not_be_moved_at_all_blames_no_day) {
  const FactorReport report = factors_of([](const Conditions& c) { return !c.clock.empty(); });
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_THAT(report.notes, Contains(HasSubstr("on an ordinary day, too")));
}

TEST(FactorSearch, A_special_day_is_named) {
  const FactorReport report =
      factors_of([](const Conditions& c) { return c.clock.find("-02-29") != std::string::npos; });
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings.front().conditions.clock, "2028-02-29T12:00:00Z");
}

TEST(FactorSearch, What_cannot_be_made_is_told_as_not_tried) {
  MockExecutor executor(MockExecutor::FullTruth([](const Experiment& experiment, int) {
    return experiment.conditions.no_network ? does_not_start(experiment, "not permitted")
                                            : passes(experiment, 1ms);
  }));
  EventStream events;
  TrialRunner runner(executor, ScriptedHunt::a_test(), events, 24h);
  const FactorReport report =
      look_for_factors(runner, ScriptedHunt::a_test(), factor_levels(some_machine()), {});
  EXPECT_THAT(report.not_tried, Contains(Field(&FactorReport::NotTried::factor, "network")));
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST(FactorSearch, Looks_at_the_factors_that_were_asked_for) {
  FactorOptions options;
  options.only = {"umask"};
  EXPECT_EQ(factors_of([](const Conditions&) { return false; }, options).levels, 2);
}

}  // namespace
}  // namespace unflake
