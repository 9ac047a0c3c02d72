#include "suite/frameworks.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"
#include "support/test_launcher.h"

namespace unflake {
namespace {

using std::chrono_literals::operator""s;

std::vector<Test> gtest_listed(const std::string& name) {
  return list_fixture(name, Framework::gtest);
}

std::string listing_failure(const std::string& name, Duration timeout) {
  TestLauncher launcher;
  ListOptions options;
  options.timeout = timeout;
  const auto tests =
      adapter_for(Framework::gtest).list(fixture_target(name, Framework::gtest), options, launcher);
  return tests ? "none" : to_string(tests.error());
}

TEST(GtestText, Reads_suites_and_cases_and_drops_comments) {
  const auto cases = parse_gtest_text(
      "Running main() from gtest_main.cc\n"
      "Sized/0.  # TypeParam = int\n"
      "  Has_a_size\n"
      "Small/Numbers.\n"
      "  Are_positive/0  # GetParam() = 1.\n");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].suite, "Sized/0");
  EXPECT_EQ(cases[0].name, "Has_a_size");
  EXPECT_EQ(cases[1].suite, "Small/Numbers");
  EXPECT_EQ(cases[1].name, "Are_positive/0");
}

TEST(GtestText, Does_not_take_what_main_prints_for_tests) {
  EXPECT_TRUE(parse_gtest_text("Starting up.\n  loaded 3 plugins\n  indented\n").empty());
  EXPECT_TRUE(parse_gtest_text("").empty());
  EXPECT_TRUE(parse_gtest_text("  Orphan\n.\n  x\n").empty());
}

TEST(GtestJson, Needs_a_complete_report) {
  EXPECT_FALSE(parse_gtest_json("Suite.\n  Case\n"));
  EXPECT_FALSE(parse_gtest_json("{\n  \"tests\": 1,\n  \"testsuites\": ["));
  EXPECT_FALSE(parse_gtest_json("{\n  \"tests\": 1,\n  \"testsuites\": [1\n}"));
  EXPECT_TRUE(parse_gtest_json("noise {\n  \"tests\": 0,\n  \"testsuites\": []\n}\nmore noise"));
}

TEST(GtestFilter, Replaces_characters_of_the_filter_language) {
  EXPECT_EQ(gtest_filter({"A.b", "A.c-d:e"}, 1), "A.c?d?e");
}

TEST(GtestFilter, Excludes_others_that_the_wildcards_would_select) {
  const std::vector<std::string> names{"A.c-d", "A.cXd", "A.c:d"};
  const std::string filter = gtest_filter(names, 0);
  EXPECT_TRUE(gtest_filter_selects(filter, names[0]));
  EXPECT_FALSE(gtest_filter_selects(filter, names[1]));
  EXPECT_TRUE(gtest_filter_selects(filter, names[2]));  // nothing tells these two apart
}

TEST(Gtest, Lists_every_kind_of_test) {
  const auto tests = gtest_listed("gtest_cases");
  for (const char* name :
       {"Arithmetic.Adds", "SafeDeathTest.Dies_as_expected", "Small/Numbers.Are_positive/10",
        "Odd/Words.Are_short/2", "Sized/1.Has_a_size", "Odd.a:b*c?d-e", "Prefix.A", "Prefix.AB"})
    EXPECT_NE(find_test(tests, name), nullptr) << name;
  EXPECT_EQ(tests.size(), 32u);
}

TEST(Gtest, Tells_where_a_test_is_defined) {
  const auto tests = gtest_listed("gtest_cases");
  const auto* test = find_test(tests, "Arithmetic.Adds");
  ASSERT_NE(test, nullptr);
  EXPECT_TRUE(test->file.ends_with("gtest_cases.cc"));
  EXPECT_GT(test->line, 0);
}

TEST(Gtest, Marks_disabled_tests_and_can_run_them) {
  const auto tests = gtest_listed("gtest_cases");
  std::vector<std::string> disabled;
  for (const auto& test : tests)
    if (test.disabled) disabled.push_back(test.id.name);
  EXPECT_EQ(disabled, (std::vector<std::string>{"Arithmetic.DISABLED_Divides_by_zero",
                                                "DISABLED_Retired.Sleeps_for_ever"}));
}

TEST(Gtest, Runs_exactly_the_one_test_that_was_asked_for) {
  TestLauncher launcher;
  for (const auto& test : gtest_listed("gtest_cases")) {
    if (test.id.name == "Ending.Hangs") continue;
    const std::string output = launcher.launch(test.command, 60s).output.text();
    EXPECT_NE(output.find("Running 1 test from 1 test suite."), std::string::npos) << test.id.name;
    EXPECT_NE(output.find("[ RUN      ] " + test.id.name + "\n"), std::string::npos) << output;
  }
}

TEST(Gtest, Selects_exactly_one_test_even_when_it_would_hang) {
  const auto tests = gtest_listed("gtest_cases");
  const auto* hangs = find_test(tests, "Ending.Hangs");
  ASSERT_NE(hangs, nullptr);
  Command command = hangs->command;
  command.argv.push_back("--gtest_list_tests");
  TestLauncher launcher;
  const auto cases = parse_gtest_text(launcher.launch(command, 60s).output.text());
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].name, "Hangs");
}

TEST(Gtest, Lists_shared_stripped_and_noisy_programs_alike) {
  for (const char* name : {"gtest_shared", "gtest_stripped", "gtest_noisy_main"}) {
    const auto tests = gtest_listed(name);
    ASSERT_EQ(tests.size(), 2u) << name;
    EXPECT_EQ(to_string(tests[0].id), std::string(name) + ":Noisy.One");
  }
}

TEST(Gtest, Is_not_misled_by_the_environment) {
  TestLauncher launcher;
  setenv("GTEST_FILTER", "Nothing", 1);
  setenv("GTEST_TOTAL_SHARDS", "7", 1);
  setenv("GTEST_SHARD_INDEX", "6", 1);
  const auto tests = gtest_listed("gtest_noisy_main");
  std::string output;
  if (!tests.empty()) output = launcher.launch(tests[0].command, 60s).output.text();
  for (const char* name : {"GTEST_FILTER", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
    unsetenv(name);
  ASSERT_EQ(tests.size(), 2u);
  EXPECT_NE(output.find("[  PASSED  ] 1 test."), std::string::npos) << output;
}

TEST(Gtest, Says_how_a_program_died_while_listing) {
  const std::string text = listing_failure("gtest_crashes_while_listing", 60s);
  EXPECT_NE(text.find("died of SIGSEGV"), std::string::npos) << text;
  EXPECT_NE(text.find("cannot open the device"), std::string::npos) << text;
}

TEST(Gtest, Says_that_a_program_did_not_list_in_time) {
  const std::string text = listing_failure("gtest_hangs_while_listing", Duration(50000));
  EXPECT_NE(text.find("within 50.0 ms"), std::string::npos) << text;
}

TEST(Gtest, Says_that_a_program_printed_no_listing) {
  const std::string text = listing_failure("not_a_test", 60s);
  EXPECT_NE(text.find("printed no GoogleTest listing"), std::string::npos) << text;
}

}  // namespace
}  // namespace unflake
