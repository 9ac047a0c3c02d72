#include "protocol/samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace unflake {
namespace {

using protocol::conflict;
using protocol::PendingStep;
using protocol::SamplerKind;
using protocol::SamplerPlan;
using Schedule = std::string;  // who went on, as letters

// Threads that each take some steps on some objects and never block.
using Program = std::vector<std::vector<PendingStep>>;

constexpr PendingStep own{0, true};

PendingStep write(uint64_t object) {
  return {object, true};
}

Schedule run(const Program& program, SamplerPlan plan) {
  // One for all runs: it is large, and a sanitizer takes long to allocate it anew.
  static const auto sampler = std::make_unique<protocol::Sampler>();
  sampler->begin(plan);
  std::vector<size_t> done(program.size());
  for (uint32_t i = 0; i < program.size(); ++i) sampler->announce(i, program[i][0]);
  Schedule schedule;
  uint32_t running = 0;
  for (;;) {
    std::vector<uint32_t> enabled;
    for (uint32_t i = 0; i < program.size(); ++i)
      if (done[i] < program[i].size()) enabled.push_back(i);
    if (enabled.empty()) return schedule;
    running = enabled.size() == 1
                  ? enabled[0]
                  : sampler->choose(enabled.data(), static_cast<uint32_t>(enabled.size()), running);
    EXPECT_TRUE(std::ranges::binary_search(enabled, running));
    schedule += static_cast<char>('a' + running);
    sampler->execute(running);
    if (++done[running] < program[running].size())
      sampler->announce(running, program[running][done[running]]);
    else
      sampler->end(running);
  }
}

std::map<Schedule, int> count(const Program& program, SamplerPlan plan, int runs) {
  std::map<Schedule, int> counts;
  for (int i = 0; i < runs; ++i) {
    plan.seed = static_cast<uint64_t>(i) + 1;
    ++counts[run(program, plan)];
  }
  return counts;
}

SamplerPlan by(SamplerKind kind) {
  SamplerPlan plan{};
  plan.kind = kind;
  plan.seed = 1;
  plan.depth = 3;
  return plan;
}

// How far from `share` of all runs the count is, in standard deviations.
double deviation(int counted, int runs, double share) {
  return std::abs(counted - runs * share) / std::sqrt(runs * share * (1 - share));
}

TEST(Samplers, The_same_seed_chooses_the_same) {
  const Program program(3, std::vector(5, write(1)));
  for (const SamplerKind kind : {SamplerKind::stay, SamplerKind::random_walk, SamplerKind::pct,
                                 SamplerKind::pos, SamplerKind::surw})
    EXPECT_EQ(run(program, by(kind)), run(program, by(kind)));
}

TEST(Samplers, Stay_changes_the_thread_only_at_its_end) {
  EXPECT_EQ(run(Program(3, std::vector(2, write(1))), by(SamplerKind::stay)), "aabbcc");
}

TEST(Samplers, A_random_walk_chooses_all_enabled_threads_alike) {
  const auto counts = count(Program(3, {write(1)}), by(SamplerKind::random_walk), 6000);
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [schedule, times] : counts) EXPECT_LT(deviation(times, 6000, 1 / 6.), 4);
}

// Of n threads and k points, a bug that needs one change is found with 1 / (n k) at least.
TEST(Samplers, Pct_finds_what_needs_one_preemption_as_often_as_it_promises) {
  SamplerPlan plan = by(SamplerKind::pct);
  plan.depth = 2;
  plan.length = 10;
  const Program program(2, std::vector(5, write(1)));
  const auto counts = count(program, plan, 4000);
  for (const char* wanted : {"aabbbbbaaa", "aaaabbbbba"}) {
    ASSERT_TRUE(counts.contains(wanted)) << wanted;
    EXPECT_GT(counts.at(wanted), 4000 / (2 * 10) / 2) << wanted;
  }
  EXPECT_FALSE(counts.contains("babbbbaaaa"));  // needs two
}

TEST(Samplers, Pct_lets_everybody_go_on_in_the_end) {
  const Program program{std::vector(10'000, own), std::vector(1, own)};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SamplerPlan plan = by(SamplerKind::pct);
    plan.seed = seed;
    EXPECT_LT(run(program, plan).find('b'), 5000u);
  }
}

// Steps that conflict with nothing keep their numbers: the order of two of them is a coin's.
TEST(Samplers, Pos_orders_two_single_steps_alike) {
  const auto counts = count(Program(2, {write(1)}), by(SamplerKind::pos), 4000);
  EXPECT_LT(deviation(counts.at("ab"), 4000, 0.5), 4);
}

// A random walk has the last step of a long thread come before a short one's with 2^-n.
TEST(Samplers, Pos_has_a_long_thread_come_first_more_often_than_a_random_walk) {
  const Program program{std::vector(8, own), {write(1)}};
  const auto is_last = [](const std::map<Schedule, int>& counts) {
    const auto found = counts.find("aaaaaaaab");
    return found == counts.end() ? 0 : found->second;
  };
  EXPECT_GT(is_last(count(program, by(SamplerKind::pos), 4000)), 4000 / 20);
  EXPECT_LT(is_last(count(program, by(SamplerKind::random_walk), 4000)), 4000 / 100);
}

TEST(Samplers, Surw_takes_all_interleavings_of_selected_steps_alike) {
  const uint64_t remaining[] = {4, 2};
  SamplerPlan plan = by(SamplerKind::surw);
  plan.remaining = remaining;
  plan.remaining_count = 2;
  const auto counts = count({std::vector(4, write(1)), std::vector(2, write(1))}, plan, 15'000);
  ASSERT_EQ(counts.size(), 15u);  // 6 choose 2
  for (const auto& [schedule, times] : counts)
    EXPECT_LT(deviation(times, 15'000, 1 / 15.), 4) << schedule;
}

TEST(Samplers, Surw_lets_steps_that_are_not_selected_pass_freely) {
  const uint64_t remaining[] = {2, 2}, selected[] = {1};
  SamplerPlan plan = by(SamplerKind::surw);
  plan.remaining = remaining;
  plan.remaining_count = 2;
  plan.selected = selected;
  plan.selected_count = 1;
  const Program program{{write(2), write(1), write(2), write(1)}, {write(1), write(1)}};
  std::map<Schedule, int> of_selected;
  for (const auto& [schedule, times] : count(program, plan, 60'000)) {
    Schedule only;
    int a = 0;
    for (const char thread : schedule)
      if (thread == 'b' || a++ % 2 == 1) only += thread;
    of_selected[only] += times;
  }
  ASSERT_EQ(of_selected.size(), 6u);
  for (const auto& [schedule, times] : of_selected)
    EXPECT_LT(deviation(times, 60'000, 1 / 6.), 4) << schedule;
}

TEST(Samplers, Steps_conflict_when_both_touch_an_object_and_one_writes) {
  EXPECT_TRUE(conflict(PendingStep{1, true}, {1, false}));
  EXPECT_FALSE(conflict(PendingStep{1, false}, {1, false}));
  EXPECT_FALSE(conflict(PendingStep{1, true}, {2, true}));
  EXPECT_FALSE(conflict(PendingStep{0, true}, {0, true}));
}

}  // namespace
}  // namespace unflake
