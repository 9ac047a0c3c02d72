#include "balance_answer.h"

#include <gtest/gtest.h>

#include "balance_results.h"

namespace unflake::eval {
namespace {

const std::string balance_output = R"({"format": "unflake-balance", "version": 1, "kind": "test",
  "test": "nap:nap", "runs": 91, "elapsed_us": 9000000, "saved_ms": 140.5,
  "interrupted": false, "out_of_budget": false, "notes": ["a note"],
  "values": [
    {"site": "nap.cc:33:nanosleep", "use": "wait", "change": "shorten", "reason": "",
     "asked_us": {"least": 200000, "most": 200000}, "proposed_us": 52000, "loads": []},
    {"site": "nap.cc:40:poll#2", "use": "time-out", "change": "keep", "reason": "it ends early",
     "asked_us": {"least": 1000, "most": 5000}, "proposed_us": 5000, "loads": []}]})";

TEST(BalanceAnswer, Is_what_the_report_says) {
  const BalanceAnswer answer = read_balance(balance_output);
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.runs, 91);
  EXPECT_EQ(answer.saved_ms, 140.5);
  ASSERT_EQ(answer.values.size(), 2u);
  EXPECT_TRUE(answer.values[0].is_changed());
  EXPECT_EQ(answer.values[0].proposed_us, 52000);
  EXPECT_EQ(answer.values[1].now_us, 5000);
  EXPECT_EQ(answer.values[1].kind, "timeout");
  EXPECT_FALSE(answer.values[1].is_changed());
}

TEST(BalanceAnswer, Finds_a_value_by_its_line) {
  const BalanceAnswer answer = read_balance(balance_output);
  ASSERT_NE(answer.at("nap.cc:40"), nullptr);
  EXPECT_EQ(answer.at("nap.cc:40")->site, "nap.cc:40:poll#2");
  EXPECT_EQ(answer.at("nap.cc:3"), nullptr);
}

TEST(BalanceAnswer, Finds_a_value_in_a_library_by_its_line) {
  BalanceAnswer answer;
  answer.values.push_back({"libretry.so!retry.cc:10:nanosleep", "wait", "keep", "", 1, 1});
  EXPECT_NE(answer.at("retry.cc:10"), nullptr);
}

TEST(BalanceAnswer, That_cannot_be_read_says_so) {
  for (const char* text : {"", "[]", "{}", "{\"format\": 3}", "not json",
                           R"({"format": "unflake-balance", "version": 2, "kind": "test"})",
                           R"({"format": "unflake-balance", "version": 1, "kind": "suite"})"})
    EXPECT_NE(read_balance(text).error, "") << text;
}

TEST(SuiteAnswer, Has_an_answer_for_every_test_and_why_there_is_none) {
  const std::string inner = balance_output.substr(balance_output.find("\"test\": \"nap"));
  const SuiteAnswer answer = read_suite_balance(
      R"({"format": "unflake-balance", "version": 1, "kind": "suite", "target": "all",
          "runs": 100, "elapsed_us": 5, "tests": [
          {"test": "all:a", "before_ms": 210, "after_ms": 60, "saved_ms": 150, "why_not": "",
           "report": {)" +
      inner +
      R"(}, {"test": "all:b", "before_ms": 0, "after_ms": 0, "saved_ms": 0,
             "why_not": "it is broken", "report": null}]})");
  EXPECT_EQ(answer.error, "");
  ASSERT_EQ(answer.tests.size(), 2u);
  EXPECT_EQ(answer.tests[0].saved_ms, 140.5);  // with all that is proposed
  EXPECT_EQ(answer.tests[0].values.size(), 2u);
  EXPECT_EQ(answer.tests[1].error, "it is broken");
}

TEST(BalanceResults, Come_back_as_they_were_written) {
  BalanceResults results;
  results.settings.checks = 7;
  TimedMeasurement program;
  program.program = "nap";
  program.proposals.push_back(
      {read_balance(balance_output), {1000, 1, 60.5}, {{{"nap.cc:33"}, {9, 2, 0}}}});
  program.at_loads = CheckedAtLoads{read_balance(balance_output), {1, 0, 5}, {}, {}, {}, {}};
  results.programs.push_back(program);
  const std::string text = balance_results_json(results);
  const auto again = parse_balance_results(text, "file");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(balance_results_json(*again), text);
  EXPECT_FALSE(parse_balance_results("{}", "file").has_value());
}

}  // namespace
}  // namespace unflake::eval
