#include "suite/frameworks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/fixtures.h"
#include "support/scripted_launcher.h"
#include "support/test_launcher.h"

namespace unflake {
namespace {

using std::chrono_literals::operator""s;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const EnvLookup nothing_set = [](const std::string&) { return std::optional<std::string>(); };

std::vector<Test> listed(bool open_cases) {
  TestLauncher launcher;
  ListOptions options;
  options.open_cases = open_cases;
  Target target = fixture_target("ctest_project", Framework::ctest);
  target.name = ctest_target_name(target.path);
  auto tests = adapter_for(Framework::ctest).list(target, options, launcher);
  EXPECT_TRUE(tests) << to_string(tests.error());
  return tests ? std::move(*tests) : std::vector<Test>{};
}

const Test& named(const std::vector<Test>& tests, const std::string& name) {
  static const Test none;
  const Test* test = find_test(tests, name);
  EXPECT_NE(test, nullptr) << name;
  return test ? *test : none;
}

std::string refusal(const std::string& json) {
  const auto tests = parse_ctest_json(json, "t", nothing_set);
  return tests ? "none" : to_string(tests.error());
}

std::vector<std::string> shown(const Result<std::vector<EnvChange>>& changes) {
  if (!changes) return {to_string(changes.error())};
  std::vector<std::string> texts;
  for (const EnvChange& change : *changes)
    texts.push_back(change.name + (change.value ? "=" + *change.value : " unset"));
  return texts;
}

TEST(CtestEnvironment, Applies_settings_then_modifications_in_order) {
  const auto inherited = [](const std::string& name) {
    return name == "PATH" ? std::optional<std::string>("/bin") : std::nullopt;
  };
  EXPECT_THAT(shown(ctest_environment(
                  {"A=1=2", "B=b", "C=c"},
                  {"PATH=path_list_prepend:/x", "B=string_append:!", "N=path_list_append:new",
                   "L=cmake_list_append:1", "L=cmake_list_prepend:0", "C=unset:", "S=set:a:b",
                   "B=reset:", "PATH=path_list_append:/y"},
                  inherited)),
              ElementsAre("A=1=2", "B=b", "C unset", "L=0;1", "N=new", "PATH=/x:/bin:/y", "S=a:b"));
}

TEST(CtestEnvironment, Refuses_an_operation_that_it_does_not_know) {
  EXPECT_THAT(shown(ctest_environment({}, {"A=rot13:x"}, nothing_set)),
              ElementsAre(HasSubstr("A=rot13:x")));
  EXPECT_THAT(shown(ctest_environment({}, {"nonsense"}, nothing_set)),
              ElementsAre(HasSubstr("nonsense")));
}

TEST(CtestJson, Refuses_a_format_of_another_version_and_names_both) {
  const std::string text = refusal(R"({"kind":"ctestInfo","version":{"major":2},"tests":[]})");
  EXPECT_THAT(text, HasSubstr("version 2"));
  EXPECT_THAT(text, HasSubstr("version 1"));
}

TEST(CtestJson, Refuses_what_is_no_list_of_tests) {
  for (const char* text : {"", "{", "[]", "{}", R"({"kind":"other","version":{"major":1}})",
                           R"({"kind":"ctestInfo","version":{"major":1},"tests":3})"})
    EXPECT_NE(refusal(text), "none") << text;
}

TEST(CtestJson, Survives_values_of_the_wrong_kind) {
  const auto tests = parse_ctest_json(
      R"({"kind":"ctestInfo","version":{"major":1},"backtraceGraph":{"nodes":[{"parent":0,"file":9,
          "line":1}],"files":[]},"tests":[7,{"name":3,"command":"x","backtrace":0,"properties":[
          {"name":"TIMEOUT","value":"soon"},{"name":"PROCESSORS","value":-5},
          {"name":"LABELS","value":[1,"a"]},{"name":"SKIP_RETURN_CODE","value":1e300},5]}]})",
      "t", nothing_set);
  ASSERT_TRUE(tests);
  ASSERT_EQ(tests->size(), 2u);
  EXPECT_TRUE(tests->at(0).command.argv.empty());
  EXPECT_EQ(tests->at(1).processors, 1);
  EXPECT_THAT(tests->at(1).labels, ElementsAre("a"));
}

TEST(Ctest, Is_named_after_the_project) {
  EXPECT_EQ(ctest_target_name(fixture("ctest_project")), "Harbour");
  EXPECT_EQ(ctest_target_name(UNFLAKE_FIXTURES), "fixtures");
  EXPECT_EQ(to_string(named(listed(false), "passes").id), "Harbour:passes");
}

TEST(Ctest, Reads_how_the_end_of_a_test_is_to_be_understood) {
  const auto tests = listed(false);
  EXPECT_THAT(named(tests, "prints").rule.pass_patterns,
              ElementsAre("answer is [0-9]+", "never this"));
  EXPECT_THAT(named(tests, "prints_an_error").rule.fail_patterns, ElementsAre("ERROR"));
  EXPECT_THAT(named(tests, "skips_by_words").rule.skip_patterns, ElementsAre("SKIPPED"));
  EXPECT_EQ(named(tests, "skips_by_code").rule.skip_return_code, 77);
  EXPECT_TRUE(named(tests, "will_fail").rule.will_fail);
  EXPECT_EQ(named(tests, "hangs").timeout, Duration(500000));
}

TEST(Ctest, Reads_what_matters_for_scheduling) {
  const auto tests = listed(false);
  const auto& query = named(tests, "query");
  EXPECT_THAT(query.fixtures.required, ElementsAre("database"));
  EXPECT_THAT(named(tests, "database_up").fixtures.setup, ElementsAre("database"));
  EXPECT_THAT(named(tests, "database_down").fixtures.cleanup, ElementsAre("database"));
  EXPECT_THAT(query.locks, UnorderedElementsAre("port", "disk"));
  EXPECT_THAT(query.depends, Contains("passes"));
  EXPECT_THAT(query.labels, UnorderedElementsAre("slow", "db"));
  EXPECT_EQ(query.processors, 2);
  EXPECT_TRUE(named(tests, "alone").serial);
}

TEST(Ctest, Takes_for_disabled_only_what_the_suite_itself_disables) {
  const auto tests = listed(false);
  EXPECT_THAT(named(tests, "switched_off").disabled_reason, HasSubstr("DISABLED"));
  for (const unflake::Test& test : tests) EXPECT_EQ(test.disabled, test.id.name == "switched_off");
}

TEST(Ctest, Says_what_is_not_built_and_how_to_build_it) {
  const auto tests = listed(false);
  EXPECT_THAT(named(tests, "not_built").obstacle,
              AllOf(HasSubstr("not built: "), HasSubstr("no_such_program; cmake --build "),
                    HasSubstr("ctest_project")));
  EXPECT_THAT(named(tests, "Dock_NOT_BUILT").obstacle,
              AllOf(HasSubstr("not built: Dock, and so its tests are not known; cmake --build "),
                    HasSubstr("--target Dock")));
  EXPECT_THAT(named(tests, "needs_a_file").required_files, ElementsAre(HasSubstr("/no_such_file")));
  EXPECT_EQ(named(tests, "passes").obstacle, "");
}

TEST(Ctest, Reads_which_programs_are_missing) {
  const auto missing = parse_missing_programs(
      "Could not find executable /b/a_test\nLooked in the following places:\n/b/a_test\n"
      "  Test  #1: a: b\n2: Test command: /b/c\n  Test #12: c\n"
      "Could not find executable d\n  Test #13: d\n");
  EXPECT_THAT(missing,
              UnorderedElementsAre(testing::Pair("a: b", "/b/a_test"), testing::Pair("d", "d")));
}

TEST(Ctest, Names_the_configuration_and_tells_a_tool_from_a_target) {
  EXPECT_EQ(missing_program("lint", "clang-tidy-99", "/x/my build", "Debug"),
            "no such program: clang-tidy-99; install it, or cmake --build '/x/my build' "
            "--config Debug");
  EXPECT_EQ(missing_program("odd", "", "/x/b", ""),
            "CTest finds no program for it; cmake --build /x/b");
}

TEST(Ctest, Runs_a_test_in_the_surroundings_that_it_declares) {
  TestLauncher launcher;
  const auto tests = listed(false);
  const std::string output =
      launcher.launch(named(tests, "surroundings").command, 60s).output.text();
  EXPECT_THAT(output, StartsWith("hello world|a:b:c|-|"));
  EXPECT_THAT(output, HasSubstr("/elsewhere\n"));
}

TEST(Ctest, Points_at_the_call_in_the_projects_own_file) {
  const auto tests = listed(false);
  const auto& direct = named(tests, "alone");
  EXPECT_TRUE(direct.file.ends_with("ctest_project/CMakeLists.txt")) << direct.file;
  EXPECT_GT(named(tests, "helped").line, direct.line);  // not the line inside the helper
  EXPECT_EQ(named(tests, "units").line, named(tests, "helped").line + 2);
}

TEST(Ctest, Knows_the_framework_behind_an_entry) {
  const auto tests = listed(false);
  EXPECT_EQ(named(tests, "passes").framework, Framework::ctest);
  EXPECT_EQ(named(tests, "units").framework, Framework::gtest);
  EXPECT_EQ(named(tests, "Noisy.One").framework, Framework::gtest);
  EXPECT_EQ(named(tests, "checks").framework, Framework::doctest);
  EXPECT_TRUE(named(tests, "units").is_entry);
}

TEST(Ctest, Opens_an_executable_into_cases_that_inherit_from_their_entry) {
  TestLauncher launcher;
  const auto tests = listed(true);
  EXPECT_EQ(find_test(tests, "units"), nullptr);
  const auto& one = named(tests, "units/Noisy.One");
  EXPECT_FALSE(one.is_entry);
  EXPECT_EQ(one.timeout, Duration(30s));
  EXPECT_THAT(one.labels, ElementsAre("unit"));
  EXPECT_EQ(one.command.cwd, fixture("ctest_project"));
  ASSERT_FALSE(one.command.env.empty());
  EXPECT_EQ(one.command.env.back().name, "GREETING");
  EXPECT_THAT(launcher.launch(one.command, 60s).output.text(), HasSubstr("[  PASSED  ] 1 test."));
  EXPECT_THAT(named(tests, "after_units").depends,
              ElementsAre("units/Noisy.One", "units/Noisy.Two"));
}

TEST(Ctest, Leaves_closed_what_has_no_meaning_for_a_single_case) {
  const auto tests = listed(true);
  for (const char* name : {"Noisy.One", "expected_to_break", "breaks_while_listing", "passes"})
    EXPECT_NE(find_test(tests, name), nullptr) << name;
}

TEST(Ctest, Asks_for_a_configuration_where_ctest_would_list_nothing) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("multi-config-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "CMakeCache.txt") << "CMAKE_GENERATOR:INTERNAL=Ninja Multi-Config\n"
                                           << "CMAKE_CONFIGURATION_TYPES:STRING=Debug;Release\n";
  ScriptedLauncher launcher;
  const auto tests =
      adapter_for(Framework::ctest).list({"t", Framework::ctest, folder, {}}, {}, launcher);
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(tests);
  EXPECT_THAT(tests.error().next, HasSubstr("Debug, Release"));
}

TEST(Ctest, Quotes_what_ctest_says_when_it_cannot_read_a_folder) {
  ScriptedLauncher launcher;
  launcher.answer("--show-only=json-v1", "", 8, "CMake Error: Parse error. at line 3");
  const auto tests =
      adapter_for(Framework::ctest).list({"t", Framework::ctest, "/nowhere", {}}, {}, launcher);
  ASSERT_FALSE(tests);
  EXPECT_THAT(tests.error().what, HasSubstr("Parse error. at line 3"));
}

TEST(SelectsCases, Sees_the_filters_of_each_framework) {
  EXPECT_TRUE(selects_cases(Framework::gtest, {"-v", "--gtest_filter=A.b"}));
  EXPECT_FALSE(selects_cases(Framework::gtest, {"--gtest_output=xml"}));
  EXPECT_TRUE(selects_cases(Framework::catch2, {"-r", "xml", "a name"}));
  EXPECT_FALSE(selects_cases(Framework::catch2, {"-r", "xml", "--durations", "yes", "-s"}));
  EXPECT_TRUE(selects_cases(Framework::doctest, {"-tc=a"}));
  EXPECT_TRUE(selects_cases(Framework::doctest, {"--dt-test-suite=a"}));
  EXPECT_FALSE(selects_cases(Framework::doctest, {"--no-colors=true", "---"}));
  EXPECT_TRUE(selects_cases(Framework::catch2, {"--list-tags"}));
  EXPECT_TRUE(selects_cases(Framework::gtest, {"--gtest_list_tests"}));
  EXPECT_TRUE(selects_cases(Framework::doctest, {"--dt-list-test-suites"}));
  EXPECT_TRUE(selects_cases(Framework::boost_test, {"--list_content"}));
  EXPECT_TRUE(selects_cases(Framework::gtest, {"--help"}));
  EXPECT_FALSE(selects_cases(Framework::gtest, {"--data=list"}));
  EXPECT_TRUE(selects_cases(Framework::boost_test, {"--run_test=a"}));
  EXPECT_FALSE(selects_cases(Framework::boost_test, {"--log_level=all"}));
}

}  // namespace
}  // namespace unflake
