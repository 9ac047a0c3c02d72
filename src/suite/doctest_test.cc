#include "suite/frameworks.h"

#include <gtest/gtest.h>

#include <set>

#include "support/fixtures.h"
#include "support/scripted_launcher.h"
#include "support/test_launcher.h"

namespace unflake {
namespace {

using std::chrono_literals::operator""s;

std::vector<Test> doctest_listed(const std::string& name) {
  return list_fixture(name, Framework::doctest);
}

// The lines of the cases that a run enters. A case that crashes leaves no end of the
// report, so this does not read it as XML.
std::vector<int> lines_run(Command command) {
  command.argv.push_back("--reporters=xml");
  TestLauncher launcher;
  const std::string output = launcher.launch(command, 60s).output.text();
  std::vector<int> lines;
  for (size_t at = 0; (at = output.find("<TestCase ", at)) != std::string::npos; ++at) {
    const std::string element = output.substr(at, output.find('>', output.find(" line=", at)) - at);
    if (element.ends_with("skipped=\"true\"/")) continue;
    lines.push_back(std::atoi(element.c_str() + element.find(" line=\"") + 7));
  }
  return lines;
}

TEST(DoctestXml, Reads_raw_line_feeds_and_missing_names) {
  const auto cases = parse_doctest_xml(
      "noise <doctest version=\"2.4.9\"><TestCase name=\"a\nb\" testsuite=\"s\" filename=\"/f.cc\" "
      "line=\"3\" skipped=\"false\"/><TestCase filename=\"/f.cc\" line=\"4\"/></doctest> noise");
  ASSERT_TRUE(cases);
  ASSERT_EQ(cases->size(), 2u);
  EXPECT_EQ(cases->at(0).name, "a\nb");
  EXPECT_EQ(cases->at(0).suite, "s");
  EXPECT_EQ(cases->at(0).line, 3);
  EXPECT_EQ(cases->at(1).name, "");
}

TEST(DoctestXml, Needs_a_complete_document) {
  EXPECT_FALSE(parse_doctest_xml("[doctest] listing all test case names"));
  EXPECT_FALSE(parse_doctest_xml("<doctest version=\"1\"><TestCase name=\"a\"/>"));
  EXPECT_FALSE(parse_doctest_xml("</doctest><doctest "));
}

TEST(DoctestSelection, Needs_a_position_only_where_the_filters_match_more) {
  const std::vector<ListedCase> cases{{"", "twin", "a.cc", 1, false, {}},
                                      {"", "other", "a.cc", 2, false, {}},
                                      {"", "twin", "a.cc", 3, false, {}}};
  const auto selections = doctest_selections(cases);
  EXPECT_EQ(selections.at(1).back(), "--test-case=other");
  EXPECT_EQ(selections.at(2).back(), "--last=2");
}

TEST(DoctestSelection, Counts_what_wildcards_and_missing_suites_let_through) {
  const auto selections = doctest_selections({{"", "a, b", "a.cc", 1, false, {}},
                                              {"s", "a; b", "a.cc", 2, false, {}},
                                              {"", "a; b", "a.cc", 3, false, {}},
                                              {"t,", "c", "a.cc", 4, false, {}},
                                              {"t;", "c", "a.cc", 5, true, {}},
                                              {"t,", "c", "a.cc", 6, true, {}}});
  const auto ends = [&](size_t i) { return selections.at(i).back(); };
  EXPECT_EQ(ends(0), "--last=1");         // "a? b" matches the next two as well
  EXPECT_EQ(ends(1), "--test-suite=s");   // alone in its suite
  EXPECT_EQ(ends(2), "--last=2");         // any suite will do
  EXPECT_EQ(ends(3), "--test-suite=t?");  // the others are skipped
  EXPECT_EQ(ends(4), "--no-skip");        // "t;" has no wildcard
  EXPECT_EQ(ends(5), "--last=3");         // "t?" matches both others
}

// Trying each case against each other takes minutes.
TEST(DoctestSelection, Does_not_slow_down_with_the_number_of_cases) {
  std::vector<ListedCase> cases;
  for (int i = 0; i < 100'000; ++i)
    cases.push_back({i % 2 ? "suite" : "", "case " + std::to_string(i / 3), "a.cc", i, false, {}});
  EXPECT_EQ(doctest_selections(cases).back().back(), "--test-suite=suite");
}

TEST(DoctestSelection, Does_not_filter_by_a_name_that_is_not_listed_as_it_is) {
  const auto words =
      doctest_selections({{"", "a\\x1Bb", "a.cc", 1, false, {}}, {"", "c", "a.cc", 2, false, {}}})
          .front();
  EXPECT_EQ(words.back(), "--last=1");
  for (const auto& word : words) EXPECT_FALSE(word.starts_with("--test-case")) << word;
}

TEST(Doctest, Names_cases_by_suite_and_numbers_duplicates) {
  const auto tests = doctest_listed("doctest_cases");
  for (const char* name : {"doubles", "strings/doubles", "strings/only here",
                           "other/strings/only here", "twin", "twin #2", "Twin", "two\nlines", ""})
    EXPECT_NE(find_test(tests, name), nullptr) << name;
  EXPECT_EQ(tests.size(), 33u);
}

TEST(Doctest, Marks_skipped_tests) {
  std::set<std::string> skipped;
  for (const auto& test : doctest_listed("doctest_cases"))
    if (test.disabled) skipped.insert(test.id.name);
  EXPECT_EQ(skipped,
            (std::set<std::string>{"left out", "left out, and fails", "strings/left out"}));
}

TEST(Doctest, Runs_exactly_the_one_test_that_was_asked_for) {
  for (const auto& test : doctest_listed("doctest_cases"))
    EXPECT_EQ(lines_run(test.command), std::vector<int>{test.line}) << test.id.name;
}

TEST(Doctest, Lists_a_program_whose_framework_is_in_a_library) {
  EXPECT_EQ(doctest_listed("doctest_in_library").size(), 1u);
}

TEST(Doctest, Says_that_a_program_printed_no_listing) {
  ScriptedLauncher launcher;
  launcher.answer("--no-skip", "what?", 3, "unknown option");
  const auto tests =
      adapter_for(Framework::doctest).list({"t", Framework::doctest, "/t", {}}, {}, launcher);
  ASSERT_FALSE(tests);
  EXPECT_NE(tests.error().what.find("unknown option"), std::string::npos);
}

}  // namespace
}  // namespace unflake
