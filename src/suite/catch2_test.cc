#include "suite/frameworks.h"

#include <gtest/gtest.h>

#include <map>
#include <pugixml.hpp>
#include <set>

#include "support/fixtures.h"
#include "support/scripted_launcher.h"
#include "support/test_launcher.h"
#include "util/text.h"

namespace unflake {
namespace {

using std::chrono_literals::operator""s;

const Target suite{"suite", Framework::catch2, "/bin/suite", {}};

constexpr const char* version_3_listing = R"(loading plugins
<?xml version="1.0" encoding="UTF-8"?>
<MatchingTests>
  <TestCase>
    <Name>a, &quot;comma&quot; &lt;b&gt;</Name>
    <ClassName/>
    <Tags>[fast][net]</Tags>
    <SourceInfo>
      <File>/src/a.cpp</File>
      <Line>12</Line>
    </SourceInfo>
  </TestCase>
  <TestCase>
    <Name>two
lines</Name>
    <ClassName>Fixture</ClassName>
    <Tags>[.][slow]</Tags>
    <SourceInfo>
      <File>/src/b.cpp</File>
      <Line>7</Line>
    </SourceInfo>
  </TestCase>
</MatchingTests>
bye
)";

std::vector<Test> catch2_listed(const std::string& name) {
  return list_fixture(name, Framework::catch2);
}

// The names of the cases that a run reports.
std::vector<std::string> cases_run(Command command) {
  command.argv.insert(command.argv.end(), {"--reporter", "xml"});
  TestLauncher launcher;
  const std::string output = launcher.launch(command, 60s).output.text();
  pugi::xml_document document;
  document.load_string(output.c_str(), pugi::parse_default & ~pugi::parse_wconv_attribute);
  std::vector<std::string> names;
  for (const auto& found : document.select_nodes("//TestCase"))
    names.push_back(found.node().attribute("name").value());
  return names;
}

TEST(Catch2Xml, Reads_names_tags_and_places) {
  const auto cases = parse_catch2_xml(version_3_listing);
  ASSERT_TRUE(cases);
  ASSERT_EQ(cases->size(), 2u);
  EXPECT_EQ(cases->at(0).name, "a, \"comma\" <b>");
  EXPECT_EQ(cases->at(0).file, "/src/a.cpp");
  EXPECT_EQ(cases->at(0).line, 12);
  EXPECT_EQ(cases->at(0).labels, (std::vector<std::string>{"fast", "net"}));
  EXPECT_FALSE(cases->at(0).disabled);
  EXPECT_EQ(cases->at(1).name, "two\nlines");
  EXPECT_TRUE(cases->at(1).disabled);
}

TEST(Catch2Xml, Tolerates_missing_and_unknown_elements) {
  const auto cases = parse_catch2_xml(
      "<MatchingTests note='x'><TestCase><Name> </Name><New/></TestCase><Other/></MatchingTests>");
  ASSERT_TRUE(cases);
  ASSERT_EQ(cases->size(), 1u);
  EXPECT_EQ(cases->at(0).name, " ");
}

TEST(Catch2Xml, Refuses_what_is_no_document) {
  EXPECT_FALSE(parse_catch2_xml("All available test cases:\n  one\n"));
  EXPECT_FALSE(parse_catch2_xml("<MatchingTests><TestCase><Name>cut"));
  EXPECT_FALSE(parse_catch2_xml("</MatchingTests><MatchingTests>"));
}

TEST(Catch2Names, Reads_names_of_several_lines_and_quoted_ones) {
  const auto cases = parse_catch2_names("one\t@/a.cc:1\ntwo\nlines\t@/b.cc:22\n\"#x\"\t@/c:3\n");
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[1].name, "two\nlines");
  EXPECT_EQ(cases[1].line, 22);
  EXPECT_EQ(cases[2].name, "#x");
}

TEST(Catch2Spec, Quotes_what_the_spec_language_takes_for_itself) {
  EXPECT_EQ(catch2_specs({"a, \"b\" \\c [d]"})[0], "\"a\\, \\\"b\\\" \\\\c [d]\"");
  EXPECT_EQ(catch2_specs({"-x"})[0], "\"-x\"");
}

TEST(Catch2Spec, Excludes_others_that_a_star_would_select) {
  EXPECT_EQ(catch2_specs({"*b", "ab", "c"})[0], "\"*b\"~\"ab\"");
}

TEST(Catch2Spec, Gives_up_on_names_that_differ_only_in_case) {
  const auto specs = catch2_specs({"One", "one", "two"});
  EXPECT_FALSE(specs[0]);
  EXPECT_FALSE(specs[1]);
  EXPECT_TRUE(specs[2]);
}

TEST(Catch2, Lists_version_3_with_one_start) {
  ScriptedLauncher launcher;
  launcher.answer("*", version_3_listing);
  const auto tests = adapter_for(Framework::catch2).list(suite, {}, launcher);
  ASSERT_TRUE(tests);
  ASSERT_EQ(tests->size(), 2u);
  EXPECT_EQ(tests->at(0).command.argv.back(), "\"a\\, \\\"comma\\\" <b>\"");
  EXPECT_EQ(launcher.commands.size(), 1u);
}

TEST(Catch2, Does_not_take_what_main_prints_for_a_name) {
  class Noisy : public Launcher {
    ProcessResult launch(const Command& command, Duration) override {
      std::string text = "hello\nworld " + std::to_string(++starts_) + "\n";
      if (command.argv.back() == "*") text += "one\t@/a.cc:1\ntwo\t@/a.cc:2\n";
      ProcessResult result;
      result.output = {text, "", text.size()};
      return result;
    }
    int starts_ = 0;
  } launcher;
  const auto tests = adapter_for(Framework::catch2).list(suite, {}, launcher);
  ASSERT_TRUE(tests);
  ASSERT_EQ(tests->size(), 2u);
  EXPECT_EQ(tests->at(0).id.name, "one");
}

TEST(Catch2, Marks_hidden_tests) {
  std::set<std::string> hidden;
  for (const auto& test : catch2_listed("catch2_cases"))
    if (test.disabled) hidden.insert(test.id.name);
  EXPECT_EQ(hidden, (std::set<std::string>{"hidden", "hidden by tag"}));
}

TEST(Catch2, Tells_where_a_test_is_defined) {
  const auto tests = catch2_listed("catch2_cases");
  const auto* test = find_test(tests, "doubles");
  ASSERT_NE(test, nullptr);
  EXPECT_TRUE(test->file.ends_with("catch2_cases.cc"));
  EXPECT_GT(test->line, 0);
}

TEST(Catch2, Runs_exactly_the_one_test_that_was_asked_for) {
  const auto tests = catch2_listed("catch2_cases");
  EXPECT_EQ(tests.size(), 31u);
  for (const auto& test : tests)
    EXPECT_EQ(cases_run(test.command), std::vector<std::string>{std::string(trim(test.id.name))})
        << test.command.argv.back();
}

TEST(Catch2, Passes_on_the_refusal_of_duplicate_names) {
  TestLauncher launcher;
  const auto tests =
      adapter_for(Framework::catch2)
          .list(fixture_target("catch2_duplicates", Framework::catch2), {}, launcher);
  ASSERT_FALSE(tests);
  EXPECT_NE(tests.error().what.find("already defined"), std::string::npos) << tests.error().what;
}

TEST(Catch2Tags, Are_read_with_all_their_spellings) {
  EXPECT_EQ(parse_catch2_tags("[log] starting\nTags for matching test cases:\n   2  [!hide]\n"
                              "  12  [Net][net]\n      [NET]\n3 tags\n\n"),
            (std::vector<std::string>{"!hide", "Net", "net", "NET"}));
}

TEST(Catch2, Version_2_tells_tags_when_they_are_wanted) {
  TestLauncher launcher;
  ListOptions options;
  options.labels = true;
  const Target target{"catch2_cases", Framework::catch2, fixture("catch2_cases"), {}};
  const auto tests = adapter_for(Framework::catch2).list(target, options, launcher);
  ASSERT_TRUE(tests) << to_string(tests.error());
  std::map<std::string, std::set<std::string>> labels;
  for (const auto& test : *tests) labels[test.id.name] = {test.labels.begin(), test.labels.end()};
  EXPECT_EQ(labels["doubles"], (std::set<std::string>{"fast", "numbers"}));
  EXPECT_EQ(labels["a requirement fails"], std::set<std::string>{"numbers"});
  EXPECT_TRUE(labels["hidden by tag"].contains("slow"));
  EXPECT_TRUE(labels["throws"].empty());
  EXPECT_TRUE(labels["[brackets] and [more]"].empty());
  for (const auto& test : catch2_listed("catch2_cases")) EXPECT_TRUE(test.labels.empty());
}

}  // namespace
}  // namespace unflake
