#include "suite/frameworks.h"

#include <gtest/gtest.h>

#include <set>

#include "support/fixtures.h"
#include "support/test_launcher.h"

namespace unflake {
namespace {

using std::chrono_literals::operator""s;

std::vector<Test> boost_listed(const std::string& name) {
  return list_fixture(name, Framework::boost_test);
}

// The names of the cases that a run enters, without their suites.
std::vector<std::string> boost_cases_run(const Command& command) {
  constexpr std::string_view entering = "Entering test case \"";
  TestLauncher launcher;
  const std::string output = launcher.launch(command, 60s).output.text();
  std::vector<std::string> names;
  for (size_t at = 0; (at = output.find(entering, at)) != std::string::npos;) {
    at += entering.size();
    names.push_back(output.substr(at, output.find('"', at) - at));
  }
  return names;
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

TEST(BoostGraph, Reads_the_tree_with_places_and_labels) {
  const auto cases = parse_boost_graph(
      "noise\ndigraph G {rankdir=LR;\n"
      "tu1[shape=ellipse,peripheries=2,fontname=Helvetica,color=green,label=\"module\"];\n{\n"
      "tu2[shape=Mrecord,fontname=Helvetica,color=green,label=\"s|/a.cc(3)|labels: @x\"];\n"
      "tu1 -> tu2;\n{\n"
      "tu65536[shape=Mrecord,fontname=Helvetica,color=yellow,label=\"a|b|/a.cc(4)|timeout=3\"];\n"
      "tu2 -> tu65536;\n}\n"
      "tu65537[shape=Mrecord,fontname=Helvetica,color=green,label=\"c|/a.cc(9)\"];\n"
      "tu1 -> tu65537;\ntu65537 -> tu65536[color=red,style=dotted,constraint=false];\n"
      "}\n}\n");
  ASSERT_TRUE(cases);
  ASSERT_EQ(cases->size(), 2u);
  EXPECT_EQ(cases->at(0).suite, "s");
  EXPECT_EQ(cases->at(0).name, "a|b");
  EXPECT_EQ(cases->at(0).line, 4);
  EXPECT_TRUE(cases->at(0).disabled);
  EXPECT_EQ(cases->at(0).labels, std::vector<std::string>{"x"});
  EXPECT_EQ(cases->at(1).suite, "");
  EXPECT_EQ(cases->at(1).name, "c");
}

TEST(BoostGraph, Needs_a_complete_graph) {
  EXPECT_FALSE(parse_boost_graph("doubles*\n    inner*\n"));
  EXPECT_FALSE(parse_boost_graph("digraph G {rankdir=LR;\ntu1[color=green,label=\"m\"];\n{\n"));
  EXPECT_TRUE(parse_boost_graph("digraph G {\n}\n}\n}\n"));
}

TEST(BoostFilter, Ends_a_component_at_a_character_that_cannot_be_quoted) {
  EXPECT_EQ(boost_filter("suite/case"), "suite/case");
  EXPECT_EQ(boost_filter("s/case<a,b>"), "s/case<a*");
}

TEST(BoostTest, Names_cases_by_their_path) {
  const auto tests = boost_listed("boost_cases");
  for (const char* name : {"doubles", "numbers/doubles", "numbers/inner/throws", "data/_11",
                           "sized<unsigned long>", "retired/inside"})
    EXPECT_NE(find_test(tests, name), nullptr) << name;
  EXPECT_EQ(tests.size(), 26u);
}

TEST(BoostTest, Tells_labels_and_where_a_test_is_defined) {
  const auto tests = boost_listed("boost_cases");
  const auto* test = find_test(tests, "numbers/a_check_fails");
  ASSERT_NE(test, nullptr);
  EXPECT_TRUE(test->file.ends_with("boost_cases.cc"));
  EXPECT_GT(test->line, 0);
  EXPECT_EQ(test->labels, std::vector<std::string>{"fast"});
}

TEST(BoostTest, Marks_disabled_tests) {
  std::set<std::string> disabled;
  for (const auto& test : boost_listed("boost_cases"))
    if (test.disabled) disabled.insert(test.id.name);
  EXPECT_EQ(disabled, (std::set<std::string>{"left_out", "retired/inside"}));
}

TEST(BoostTest, Runs_exactly_the_one_test_that_was_asked_for) {
  for (const auto& test : boost_listed("boost_cases")) {
    std::vector<std::string> expected{last_part(test.id.name)};
    if (test.id.name == "needs_doubles") expected.insert(expected.begin(), "doubles");
    EXPECT_EQ(boost_cases_run(test.command), expected) << test.id.name;
  }
}

TEST(BoostTest, Lists_a_program_whose_framework_is_in_a_library) {
  const auto tests = boost_listed("boost_shared");
  ASSERT_EQ(tests.size(), 2u);
  EXPECT_EQ(tests[0].id.name, "outer/one");
}

}  // namespace
}  // namespace unflake
