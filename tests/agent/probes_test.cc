#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>

#include "agent/probed_run.h"

namespace unflake {
namespace {

using Where = ProbeSet::Where;

std::string torture_fixture(const std::string& name) {
  return std::string(UNFLAKE_TORTURE) + "/" + name;
}

uint64_t entry_of(const std::string& path, const std::string& function) {
  const auto image = Image::open(path);
  EXPECT_TRUE(image) << path;
  for (const Function& known : (*image)->functions())
    if (known.mangled.find(function) != std::string::npos) return known.start;
  ADD_FAILURE() << "no function " << function;
  return 0;
}

uint32_t hits_at(const ProbeSet& set, const ProbedRun& run, uint32_t image, uint64_t offset) {
  for (size_t i = 0; i < set.probes.size(); ++i)
    if (set.probes[i].address == protocol::make_address(image, offset)) return run.hits[i];
  ADD_FAILURE() << "no probe there";
  return 0;
}

const std::string one_loop = torture_fixture("one_loop");

ProbeSet probes_of(const std::string& path, Where where, uint8_t flags = 0) {
  ProbeSet set;
  set.add(path, where, flags);
  return set;
}

TEST(Probes, Every_call_of_a_function_is_counted) {
  const ProbeSet set = probes_of(one_loop, Where::entries);
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop, "1000"});
  EXPECT_EQ(run.output, "1000\n");
  EXPECT_EQ(hits_at(set, run, 0, entry_of(one_loop, "looped")), 1000u);
  EXPECT_EQ(run.degraded, 0u);
}

TEST(Probes, A_one_shot_probe_is_hit_once) {
  const ProbeSet set = probes_of(one_loop, Where::entries, protocol::probe_one_shot);
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop, "1000"});
  EXPECT_EQ(run.output, "1000\n");
  EXPECT_EQ(hits_at(set, run, 0, entry_of(one_loop, "looped")), 1u);
}

TEST(Probes, An_entry_is_hit_once_however_often_the_function_is_called) {
  const ProbeSet set = probes_of(one_loop, Where::entries, protocol::probe_one_shot);
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop, "100000"});
  EXPECT_EQ(run.output, "100000\n");
  EXPECT_EQ(hits_at(set, run, 0, entry_of(one_loop, "looped")), 1u);
  EXPECT_EQ(run.degraded, 0u);
}

TEST(Probes, Jumps_are_taken_out_while_other_threads_come_to_them) {
  const std::string program = torture_fixture("hot_functions");
  const ProbeSet set = probes_of(program, Where::entries, protocol::probe_one_shot);
  const auto may_jump = [](const protocol::Probe& probe) {
    return (probe.flags & protocol::probe_may_jump) != 0;
  };
  EXPECT_GE(std::count_if(set.probes.begin(), set.probes.end(), may_jump), 40);
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {program});
  EXPECT_EQ(run.output, "3200000\n");
  EXPECT_EQ(run.status, 0);
}

TEST(Probes, A_library_may_be_loaded_by_a_thread_that_blocks_all_signals) {
  const std::string program = torture_fixture("blocks_signals");
  const ProbeSet set = probes_of(program, Where::entries, protocol::probe_one_shot);
  const ProbedRun run =
      run_probed(UNFLAKE_AGENT_LIBRARY, set, {program, torture_fixture("plugin.so")});
  EXPECT_EQ(run.output, "loaded\nplugin leaves\n");
  EXPECT_EQ(run.status, 0);
}

TEST(Probes, A_place_that_holds_another_byte_is_left_out_and_reported) {
  ProbeSet set = probes_of(one_loop, Where::entries);
  const uint64_t entry = entry_of(one_loop, "looped");
  for (auto& probe : set.probes)
    if (protocol::offset_of(probe.address) == entry) probe.first_byte ^= 0xff;
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop});
  EXPECT_EQ(run.output, "10\n");
  EXPECT_EQ(hits_at(set, run, 0, entry), 0u);
  EXPECT_EQ(hits_at(set, run, 0, entry_of(one_loop, "main")), 1u);
  EXPECT_EQ(run.degraded, protocol::probe_mismatch);
}

TEST(Probes, Another_build_of_the_program_gets_none) {
  ProbeSet set = probes_of(one_loop, Where::entries);
  set.images[0].build_id[0] ^= 1;
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop});
  EXPECT_EQ(run.output, "10\n");
  EXPECT_EQ(total(run.hits), 0u);
}

TEST(Probes, A_plan_out_of_order_does_no_harm) {
  ProbeSet set = probes_of(one_loop, Where::instructions);
  std::reverse(set.probes.begin(), set.probes.end());
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop});
  EXPECT_EQ(run.output, "10\n");
  EXPECT_NE(run.degraded & protocol::probe_mismatch, 0u);
}

TEST(Probes, Places_outside_of_the_code_are_left_out_and_reported) {
  ProbeSet set = probes_of(one_loop, Where::entries);
  protocol::Probe far = set.probes.back();
  far.address += 0x10000000;
  set.probes.push_back(far);
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {one_loop});
  EXPECT_EQ(run.output, "10\n");
  EXPECT_EQ(run.degraded, protocol::probe_mismatch);
}

TEST(Probes, A_library_gets_its_probes_before_its_constructors_run_each_time_that_it_is_loaded) {
  const std::string program = torture_fixture("tortured_gcc_O2");
  const std::string plugin = torture_fixture("plugin.so");
  const ProbeSet set = probes_of(plugin, Where::entries);
  const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {program, plugin});
  EXPECT_EQ(hits_at(set, run, 0, entry_of(plugin, "_GLOBAL__sub_I")), 3u);
  EXPECT_EQ(hits_at(set, run, 0, entry_of(plugin, "plugin_call")), 9u);
}

TEST(Probes, Code_is_not_left_writable) {
  const std::string program = torture_fixture("look_at_maps");
  for (const uint8_t flags : {uint8_t{0}, protocol::probe_one_shot}) {
    const ProbeSet set = probes_of(program, Where::instructions, flags);
    const ProbedRun run = run_probed(UNFLAKE_AGENT_LIBRARY, set, {program});
    EXPECT_EQ(run.output, "writable code: 0\n");
    EXPECT_GT(total(run.hits), 0u);
  }
}

// Every call that the agent makes to get ready, and the first ones after it, fails once.
void fail_each_call(const std::string& program, uint8_t flags) {
  const ProbeSet set = probes_of(program, Where::instructions, flags);
  const ProbedRun plain = run_probed("", {}, {program});
  bool without_probes = false;
  for (int n = 1; n <= 40; ++n) {
    const ProbedRun run = run_probed(UNFLAKE_FAILING_AGENT, set, {program},
                                     {"UNFLAKE_FAILING_CALL=" + std::to_string(n)});
    EXPECT_EQ(run.output, plain.output) << "call " << n;
    EXPECT_EQ(run.status, plain.status) << "call " << n;
    without_probes |= run.degraded != 0 && total(run.hits) == 0;
  }
  EXPECT_TRUE(without_probes);
}

TEST(Probes, A_call_that_fails_leaves_the_program_as_it_is) {
  fail_each_call(one_loop, 0);
}

TEST(Probes, A_call_that_fails_leaves_the_program_as_it_is_with_one_shot_probes) {
  fail_each_call(one_loop, protocol::probe_one_shot);
}

TEST(Probes, A_call_that_fails_leaves_signals_and_threads_as_they_are) {
  fail_each_call(torture_fixture("tortured_gcc_O2"), 0);
}

}  // namespace
}  // namespace unflake
