
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "output/read_outcome.h"

namespace unflake {
namespace {

using testing::SizeIs;
using Kind = OutcomeKind;

TestOrder tests_of(Framework framework, const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<const unflake::Test>> tests;
  for (const std::string& name : names) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"target", name};
    test->framework = framework;
    tests.push_back(std::move(test));
  }
  return {std::move(tests), Command{}};
}

std::vector<Outcome> outcomes(const TestOrder& tests, CapturedOutput output, int code = 0) {
  ExperimentResult result;
  result.process.code = code;
  result.process.output = std::move(output);
  if (result.process.output.total == 0)
    result.process.output.total = result.process.output.head.size();
  read_outcomes(tests, result);
  EXPECT_EQ(result.outcomes.size(), tests.all.size());
  EXPECT_EQ(result.outcome.kind, result.outcomes.back().kind);
  return result.outcomes;
}

constexpr const char* begin_and_first =
    "[==========] Running 3 tests from 1 test suite.\n"
    "[ RUN      ] S.A\n[       OK ] S.A (7 ms)\n"
    "[ RUN      ] S.B\n";

TEST(TestSections, What_was_not_kept_is_not_guessed) {
  const auto seen = outcomes(tests_of(Framework::gtest, {"S.A", "S.B", "S.C"}),
                             {begin_and_first,
                              "\n[ RUN      ] S.C\n[       OK ] S.C (1 ms)\n[==========] 3 tests "
                              "ran.\n[  PASSED  ] 3 tests.\n",
                              100'000});
  EXPECT_EQ(seen[0].kind, Kind::pass);
  EXPECT_EQ(seen[0].duration, std::chrono::milliseconds(7));
  EXPECT_EQ(seen[1].kind, Kind::skipped);
  EXPECT_EQ(seen[1].reason, "its output was not kept");
  EXPECT_EQ(seen[2].kind, Kind::pass);
}

TEST(TestSections, A_test_that_plays_another_does_not_take_its_place_in_the_order) {
  const auto seen =
      outcomes(tests_of(Framework::gtest, {"S.A", "S.B"}),
               {"[==========] Running 2 tests from 1 test suite.\n"
                "[ RUN      ] S.A\n[ RUN      ] S.Other\n[       OK ] S.Other (0 ms)\n"
                "[       OK ] S.A (0 ms)\n"
                "[ RUN      ] S.B\nb.cc:3: Failure\nbad\n[  FAILED  ] S.B (0 ms)\n"
                "[==========] 2 tests ran.\n[  PASSED  ] 1 test.\n",
                "", 0},
               1);
  EXPECT_EQ(seen[0].kind, Kind::pass);
  EXPECT_EQ(seen[1].kind, Kind::fail);
  ASSERT_THAT(seen[1].failures, SizeIs(1));
  EXPECT_EQ(seen[1].failures[0].line, 3);
}

TEST(TestSections, Output_without_a_word_of_the_framework_tells_nothing) {
  for (const Framework framework :
       {Framework::gtest, Framework::catch2, Framework::doctest, Framework::boost_test}) {
    const auto seen =
        outcomes(tests_of(framework, {"a", "b"}), {"\x1b[31m\xff 0.1 s: \n", "", 0}, 9);
    EXPECT_NE(seen[1].kind, Kind::pass) << to_string(framework);
  }
}

TEST(TestSections, Sections_of_Catch2_belong_to_their_test) {
  const auto sections =
      sections_in(Framework::catch2,
                  "Filters: \"a\",\"b\"\n0.001 s: first\n0.002 s: a\n0.001 s: second\n0.003 s: a\n"
                  "0.001 s: b\n===\ntest cases: 2\n",
                  {"a", "b"});
  ASSERT_THAT(sections, SizeIs(2));
  EXPECT_EQ(sections[0].name, "a");
  EXPECT_EQ(sections[0].duration, std::chrono::milliseconds(5));
  EXPECT_EQ(sections[1].name, "b");
}

}  // namespace
}  // namespace unflake
