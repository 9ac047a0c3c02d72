#include "run/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "run/local_executor.h"
#include "support/temp_folder.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using End = ProcessResult::End;

// What a shell sees under some conditions.
class OtherWorlds : public testing::Test {
 protected:
  ProcessResult run(const std::string& script, const Conditions& conditions) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"shell", "script"};
    test->command = {{"/bin/sh", "-c", script}, {}, here_.path()};
    Experiment experiment{test, {}, 60s};
    experiment.conditions = conditions;
    auto result = executor_->run(experiment);
    EXPECT_TRUE(result);
    return result ? result->process : ProcessResult{};
  }

  std::string output(const std::string& script, const Conditions& conditions) {
    const ProcessResult process = run(script, conditions);
    EXPECT_NE(process.end, End::not_started) << process.error;
    return std::string(trim(process.output.text()));
  }

  bool is_permitted(const Conditions& conditions) {
    return run("true", conditions).end != End::not_started;
  }

  TempFolder here_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_ = std::move(*LocalExecutor::create({}, interrupts_));
};

TEST_F(OtherWorlds, Variables_say_locale_and_zone) {
  Conditions conditions;
  conditions.locale = "C";
  conditions.time_zone = "<+14>-14";
  conditions.environment_bytes = 100;
  EXPECT_EQ(output("echo $LC_ALL $TZ ${#UNFLAKE_PADDING}", conditions), "C <+14>-14 100");
}

TEST_F(OtherWorlds, Limits_are_for_the_test_alone) {
  Conditions conditions;
  conditions.umask = "027";
  conditions.open_files = 64;
  EXPECT_EQ(output("umask; ulimit -n", conditions), "0027\n64");
  EXPECT_THAT(output("umask; ulimit -n", {}), Not("0027\n64"));
}

TEST_F(OtherWorlds, The_clock_shows_another_day) {
  Conditions conditions;
  conditions.clock = "2028-02-29T12:00:00Z";
  EXPECT_EQ(output("date -u +%Y-%m-%d", conditions), "2028-02-29");
}

TEST_F(OtherWorlds, Waits_until_a_moment_of_that_clock_end) {
  Conditions conditions;
  conditions.clock = "2038-01-19T03:14:07Z";
  EXPECT_EQ(output("sleep 0.01; echo awake", conditions), "awake");
}

TEST_F(OtherWorlds, The_machine_says_that_it_has_another_number_of_cores) {
  Conditions conditions;
  conditions.cores_told = 7;
  EXPECT_EQ(output("getconf _NPROCESSORS_ONLN; getconf _NPROCESSORS_CONF", conditions), "7\n7");
  EXPECT_EQ(output("getconf PAGE_SIZE", conditions), output("getconf PAGE_SIZE", {}));
}

TEST_F(OtherWorlds, One_core_alone_loads_nothing_into_the_process) {
  Conditions conditions;
  conditions.one_core = true;
  EXPECT_THAT(output("cat /proc/self/maps", conditions), Not(HasSubstr("unflake-world")));
}

TEST_F(OtherWorlds, A_seed_decides_what_is_random) {
  Conditions conditions;
  conditions.random_seed = 7;
  const std::string draw = "head -c 8 /dev/urandom | od -An -tx1";
  const std::string first = output(draw, conditions);
  EXPECT_EQ(output(draw, conditions), first);
  conditions.random_seed = 8;
  EXPECT_NE(output(draw, conditions), first);
}

TEST_F(OtherWorlds, Folders_are_empty_and_gone_afterwards) {
  Conditions conditions;
  conditions.other_folder = conditions.other_temporary = true;
  const std::string folders = output("ls -A . \"$TMPDIR\" | wc -l; pwd", conditions);
  EXPECT_THAT(folders, Not(HasSubstr(here_.path())));
  EXPECT_NE(::access(folders.substr(folders.find('/')).c_str(), F_OK), 0);
}

TEST_F(OtherWorlds, Addresses_are_the_same_in_every_run) {
  Conditions conditions;
  conditions.addresses = "fixed";
  const std::string first = output("head -1 /proc/self/maps", conditions);
  EXPECT_EQ(output("head -1 /proc/self/maps", conditions), first);
}

TEST_F(OtherWorlds, Freed_memory_is_filled) {
  Conditions conditions;
  conditions.memory_fill = 165;
  EXPECT_THAT(output("echo $GLIBC_TUNABLES", conditions),
              HasSubstr("glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"));
}

// Each waits for the other's line, so that neither ends alone.
TEST_F(OtherWorlds, A_twin_runs_at_the_same_time) {
  Conditions conditions;
  conditions.twins = 1;
  EXPECT_EQ(
      output("echo line >> log; until [ $(wc -l < log) -ge 2 ]; do :; done; echo both", conditions),
      "both");
}

TEST_F(OtherWorlds, What_is_written_is_gone_afterwards) {
  Conditions conditions;
  conditions.private_files = true;
  if (!is_permitted(conditions)) GTEST_SKIP() << "no layers over folders here";
  std::ofstream(here_.file("old")) << "as it was";
  EXPECT_EQ(output("cat old; echo changed > old; touch new; ls", conditions), "as it wasnew\nold");
  EXPECT_EQ(output("cat old; ls", {}), "as it wasold");
}

TEST_F(OtherWorlds, The_disk_is_full) {
  Conditions conditions;
  conditions.free_disk_mib = 2;
  EXPECT_EQ(run("head -c 1000000 /dev/zero > small", conditions).code, 0);
  EXPECT_NE(run("head -c 4000000 /dev/zero > large", conditions).code, 0);
  EXPECT_EQ(run("head -c 4000000 /dev/zero > large", {}).code, 0);
}

TEST_F(OtherWorlds, Only_loopback_is_left_of_the_network) {
  Conditions conditions;
  conditions.no_network = true;
  if (!is_permitted(conditions)) GTEST_SKIP() << "no networks of one's own here";
  EXPECT_EQ(output("tail -n +3 /proc/net/dev | cut -d: -f1", conditions), "lo");
}

TEST_F(OtherWorlds, What_cannot_be_made_is_no_run) {
  Conditions conditions;
  conditions.clock = "tomorrow";
  const ProcessResult process = run("true", conditions);
  EXPECT_EQ(process.end, End::not_started);
  EXPECT_THAT(process.error, HasSubstr("the conditions of this run cannot be made"));
  conditions = {};
  conditions.addresses = "everywhere";
  EXPECT_EQ(run("true", conditions).end, End::not_started);
}

TEST(ClockOf, Reads_a_time_and_nothing_else) {
  EXPECT_EQ(clock_of("1970-01-01T00:00:01Z"), 1'000'000'000);
  for (const char* text : {"", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00Zx"})
    EXPECT_FALSE(clock_of(text)) << text;
}

}  // namespace
}  // namespace unflake
