#include "protocol/samplers.h"

#include <gtest/gtest.h>

#include <map>

#include "search/schedule/portfolio.h"
#include "search/schedule/schedule_runs.h"
#include "support/controlled_test.h"

namespace unflake {
namespace {

using simulated::ControlledProgram;
using simulated::run_controlled;
using simulated::View;

// How likely it is that counts which should all be the same differ at least so much is less than
// 1 % above these values of chi-square.
constexpr double chi_square_9 = 21.67, chi_square_2 = 9.21;

template <class Counts>
double chi_square(const Counts& counts, size_t kinds, double runs) {
  const double expected = runs / static_cast<double>(kinds);
  double sum = expected * static_cast<double>(kinds - counts.size());
  for (const auto& [kind, count] : counts)
    sum += (count - expected) * (count - expected) / expected;
  return sum;
}

int failures_of(const ControlledProgram& program, Schedule schedule, int runs) {
  int failures = 0;
  for (schedule.seed = 1; schedule.seed <= static_cast<uint64_t>(runs); ++schedule.seed)
    failures += run_controlled(program, schedule).outcome.failed() ? 1 : 0;
  return failures;
}

uint64_t length_of(const ControlledProgram& program) {
  return run_controlled(program, {}).trace->controlled->points_in_all;
}

TEST(Samplers, stay_goes_on_with_the_running_thread_until_it_cannot) {
  const ExperimentResult result = run_controlled(simulated::lost_update(), {});
  const ControlledRun& run = *result.trace->controlled;
  EXPECT_FALSE(result.outcome.failed());
  for (const SwitchPoint& point : run.points) EXPECT_EQ(undisturbed_choice(point), point.chosen);
}

TEST(Samplers, the_same_seed_decides_alike_and_another_one_differently) {
  for (const Sampler sampler : {Sampler::random_walk, Sampler::pct, Sampler::pos, Sampler::surw}) {
    std::set<uint64_t> digests;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Schedule schedule;
      schedule.sampler = sampler;
      schedule.seed = seed;
      schedule.length = 20;
      schedule.remaining = {0, 2, 2, 2};
      const auto program = simulated::lost_update(3);
      const uint64_t digest = run_controlled(program, schedule).trace->controlled->digest;
      EXPECT_EQ(digest, run_controlled(program, schedule).trace->controlled->digest);
      digests.insert(digest);
    }
    EXPECT_GT(digests.size(), 3u) << to_string(sampler);
  }
}

TEST(Samplers, random_walk_takes_all_enabled_threads_alike) {
  std::map<uint32_t, int> counts;
  const uint32_t all[] = {1, 4, 6};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    protocol::Sampler sampler;
    protocol::SamplerPlan plan{};
    plan.kind = protocol::SamplerKind::random_walk;
    plan.seed = seed;
    sampler.begin(plan);
    ++counts[sampler.choose(all, 3, 1)];
  }
  EXPECT_LT(chi_square(counts, 3, 3000), chi_square_2);
}

TEST(Samplers, pct_finds_bugs_as_often_as_it_promises) {
  ControlledProgram depth_3;
  depth_3.scripts[depth_3.add_thread()]
      .set("a.cc:1", "x", 1)
      .set("a.cc:2", "x", 2)
      .read("a.cc:3", "y");
  depth_3.scripts[1].check(
      "a.cc:4", [](View view) { return !(view.shared["seen"] == 1 && view.own["y"] == 0); });
  depth_3.scripts[depth_3.add_thread()]
      .read("b.cc:1", "x")
      .local([](View view) { view.shared["seen"] = view.own["x"]; })
      .set("b.cc:2", "y", 1);
  depth_3.main()
      .spawn("main.cc:1", 1)
      .spawn("main.cc:2", 2)
      .join("main.cc:3", 1)
      .join("main.cc:4", 2);
  // The first that is interrupted goes on last.
  ControlledProgram first_falls_deepest;
  first_falls_deepest.scripts[first_falls_deepest.add_thread()]
      .set("a.cc:1", "x", 1)
      .set("a.cc:2", "x", 3);
  first_falls_deepest.scripts[first_falls_deepest.add_thread()]
      .read("b.cc:1", "x")
      .local([](View view) { view.shared["b"] = view.own["x"]; })
      .set("b.cc:2", "y", 1)
      .read("b.cc:3", "z")
      .read("b.cc:4", "x")
      .check("b.cc:5", [](View view) {
        return !(view.shared["b"] == 1 && view.shared["c"] == 1 && view.own["z"] == 1 &&
                 view.own["x"] == 1);
      });
  first_falls_deepest.main()
      .spawn("main.cc:1", 1)
      .spawn("main.cc:2", 2)
      .read("c.cc:1", "y")
      .local([](View view) { view.shared["c"] = view.own["y"]; })
      .set("c.cc:2", "z", 1)
      .join("main.cc:3", 1)
      .join("main.cc:4", 2);
  constexpr int runs = 3000;
  for (const auto& [depth, program] :
       {std::pair{2, simulated::lost_update()}, {3, depth_3}, {3, first_falls_deepest}}) {
    Schedule schedule;
    schedule.sampler = Sampler::pct;
    schedule.depth = depth;
    schedule.length = length_of(program);
    const double promised = 1.0 / (3 * std::pow(schedule.length, depth - 1));
    EXPECT_GE(failures_of(program, schedule, runs), promised * runs) << depth;
  }
}

// A walk would have to win fifty draws in a row.
TEST(Samplers, pos_lets_a_long_way_come_before_a_short_one) {
  ControlledProgram program;
  auto& far = program.scripts[program.add_thread()];
  for (int i = 0; i < 50; ++i) far.set("far.cc:1", "own", i);
  far.set("far.cc:2", "x", 1);
  program.scripts[program.add_thread()].read("near.cc:1", "x").check("near.cc:2", [](View view) {
    return view.own["x"] == 0;
  });
  program.main()
      .spawn("main.cc:1", 2)
      .spawn("main.cc:2", 1)
      .join("main.cc:3", 1)
      .join("main.cc:4", 2);
  Schedule schedule;
  schedule.sampler = Sampler::pos;
  EXPECT_GT(failures_of(program, schedule, 2000), 2000 / 100);
  schedule.sampler = Sampler::random_walk;
  EXPECT_EQ(0, failures_of(program, schedule, 2000));
}

TEST(Samplers, surw_is_uniform_over_the_orders_of_selected_accesses) {
  ControlledProgram program;
  auto& long_thread = program.scripts[program.add_thread()];
  for (int i = 0; i < 3; ++i)
    long_thread.set("a.cc:1", "noise", i).set("a.cc:2", "noise", i).set("a.cc:3", "x", 1);
  auto& short_thread = program.scripts[program.add_thread()];
  for (int i = 0; i < 2; ++i) short_thread.set("b.cc:1", "x", 2);
  program.main()
      .spawn("main.cc:1", 1)
      .spawn("main.cc:2", 2)
      .join("main.cc:3", 1)
      .join("main.cc:4", 2);
  const ScheduleProfile profile = profile_of(*run_controlled(program, {}).trace);
  ASSERT_EQ(1u, profile.shared.size());
  Schedule schedule;
  schedule.sampler = Sampler::surw;
  schedule.selected = {profile.shared[0].object};
  schedule.remaining = profile.shared[0].accesses;
  std::map<std::string, int> counts;
  for (schedule.seed = 1; schedule.seed <= 4000; ++schedule.seed) {
    std::string order;
    const ExperimentResult result = run_controlled(program, schedule);
    for (const ThreadAccess& access : executed_accesses(*result.trace->controlled))
      if (access.object == profile.shared[0].object) order += access.thread == 1 ? 'a' : 'b';
    ++counts[order];
  }
  EXPECT_EQ(10u, counts.size());
  EXPECT_LT(chi_square(counts, 10, 4000), chi_square_9);
}

}  // namespace
}  // namespace unflake
