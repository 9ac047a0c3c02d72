#include "output/read_outcome.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

bool finds(const std::string& pattern, std::string_view text) {
  const auto regex = CMakeRegex::compile(pattern);
  return regex && regex->matches(text);
}

TEST(CMakeRegex, Takes_braces_and_escaped_characters_literally) {
  EXPECT_TRUE(finds("a{2}", "a{2}"));
  EXPECT_FALSE(finds("a{2}", "aa"));
  EXPECT_TRUE(finds("a\\.b", "a.b"));
  EXPECT_FALSE(finds("a\\.b", "axb"));
  EXPECT_TRUE(finds("\\d+", "ddd"));
  EXPECT_FALSE(finds("\\d+", "123"));
  EXPECT_TRUE(finds("(a)\\1", "a1"));
}

TEST(CMakeRegex, Anchors_the_whole_text) {
  EXPECT_TRUE(finds("^one", "one\ntwo"));
  EXPECT_FALSE(finds("^two", "one\ntwo"));
  EXPECT_FALSE(finds("one$", "one\ntwo"));
  EXPECT_TRUE(finds("(^|\n)two", "one\ntwo"));
  EXPECT_TRUE(finds("[^\n]two", "one two"));
  EXPECT_FALSE(finds("[^\n]two", "one\ntwo"));
  EXPECT_TRUE(finds("one.two", "one\ntwo"));
}

TEST(CMakeRegex, Knows_no_named_classes) {
  EXPECT_TRUE(finds("x[[:alpha:]]y", "x:]y"));
  EXPECT_FALSE(finds("x[[:alpha:]]y", "xbyy"));
  EXPECT_TRUE(finds("[^a-z]Error", "1Error"));
  EXPECT_TRUE(finds("[]x]", "]"));
}

TEST(CMakeRegex, Anchors_each_alternative_by_itself) {
  EXPECT_TRUE(finds("^one|two$", "one\n"));
  EXPECT_TRUE(finds("^one|two$", "it is two"));
  EXPECT_FALSE(finds("^one|two$", "it is one or two.."));
}

// Reading on to the end of the text from each place where the pattern starts takes minutes.
TEST(CMakeRegex, Reads_long_text_once) {
  std::string text;
  while (text.size() < 1'000'000) text += "Error in a line\n";
  EXPECT_FALSE(finds("Error.*fatal", text));
  EXPECT_TRUE(finds("Error.*fatal|done", text + "done\n"));
}

TEST(CMakeRegex, Reads_past_zero_bytes) {
  EXPECT_TRUE(finds("end", std::string_view("a\0the end", 9)));
}

TEST(CMakeRegex, Does_not_match_an_anchor_where_text_is_missing) {
  const auto regex = CMakeRegex::compile("^tail");
  ASSERT_TRUE(regex);
  EXPECT_FALSE(regex->matches("tail", true, false));
  EXPECT_TRUE(regex->matches("tail", false, false));
}

TEST(CMakeRegex, Names_a_pattern_that_it_cannot_read) {
  const auto regex = CMakeRegex::compile("a(b");
  ASSERT_FALSE(regex);
  EXPECT_NE(regex.error().what.find("a(b"), std::string::npos);
  EXPECT_FALSE(CMakeRegex::compile("a)(b"));
}

std::vector<TextPiece> whole(std::string text) {
  return {{std::move(text), false, false}};
}

TEST(PassRule, Leaves_the_decision_to_the_exit_status) {
  EXPECT_EQ(judge({}, 0, {}).kind, OutcomeKind::pass);
  EXPECT_EQ(judge({}, 1, {}).kind, OutcomeKind::fail);
}

TEST(PassRule, Lets_a_pass_pattern_overrule_the_exit_status) {
  PassRule rule;
  rule.pass_patterns = {"all good", "fine"};
  EXPECT_EQ(judge(rule, 1, whole("it is fine")).kind, OutcomeKind::pass);
  const Judgement missed = judge(rule, 0, whole("nothing"));
  EXPECT_EQ(missed.kind, OutcomeKind::fail);
  EXPECT_EQ(missed.failure->kind, FailureKind::output_pattern);
}

TEST(PassRule, Lets_a_fail_pattern_overrule_exit_status_and_pass_pattern) {
  PassRule rule;
  rule.pass_patterns = {"done"};
  rule.fail_patterns = {"[^a-z]ERROR"};
  const Judgement judgement = judge(rule, 0, whole("begin\n1 ERROR: no disk\ndone\n"));
  EXPECT_EQ(judgement.kind, OutcomeKind::fail);
  EXPECT_EQ(judgement.failure->expression, "[^a-z]ERROR");
  EXPECT_EQ(judgement.failure->message,
            "the output matches FAIL_REGULAR_EXPRESSION: 1 ERROR: no disk");
}

TEST(PassRule, Shows_the_matching_line_of_a_long_text) {
  std::string text;
  while (text.size() < 1'000'000) text += "Error in a line\n";
  PassRule rule;
  rule.fail_patterns = {"Error.*fatal|no disk$"};
  EXPECT_EQ(judge(rule, 0, whole(text + "there is no disk")).failure->message,
            "the output matches FAIL_REGULAR_EXPRESSION: there is no disk");
}

TEST(PassRule, Shows_no_line_where_the_match_takes_several) {
  PassRule rule;
  rule.fail_patterns = {"begin.*end"};
  EXPECT_EQ(judge(rule, 0, whole("begin\nend\n")).failure->message,
            "the output matches FAIL_REGULAR_EXPRESSION");
  rule.skip_patterns = rule.fail_patterns;
  EXPECT_FALSE(judge(rule, 0, whole("begin\nend\n")).reason.empty());
}

TEST(PassRule, Turns_the_result_round_when_the_test_must_fail) {
  PassRule rule;
  rule.will_fail = true;
  EXPECT_EQ(judge(rule, 1, {}).kind, OutcomeKind::pass);
  EXPECT_EQ(judge(rule, 0, {}).failure->kind, FailureKind::unexpected_pass);
  rule.fail_patterns = {"ERROR"};
  EXPECT_EQ(judge(rule, 0, whole("ERROR")).kind, OutcomeKind::pass);
}

TEST(PassRule, Skips_before_anything_else) {
  PassRule rule;
  rule.skip_return_code = 77;
  rule.skip_patterns = {"SKIP"};
  rule.fail_patterns = {"SKIP"};
  EXPECT_EQ(judge(rule, 77, {}).kind, OutcomeKind::skipped);
  const Judgement judgement = judge(rule, 1, whole("SKIP: no network\n"));
  EXPECT_EQ(judgement.kind, OutcomeKind::skipped);
  EXPECT_EQ(judgement.reason, "SKIP: no network");
}

TEST(PassRule, Fails_a_test_whose_pattern_cannot_be_read) {
  PassRule rule;
  rule.skip_patterns = {"("};
  const Judgement judgement = judge(rule, 0, whole("x"));
  EXPECT_EQ(judgement.kind, OutcomeKind::fail);
  EXPECT_NE(judgement.failure->message.find("'('"), std::string::npos);
}

TEST(PassRule, Says_that_it_could_not_search_what_was_not_kept) {
  PassRule rule;
  rule.pass_patterns = {"done"};
  const Judgement judgement = judge(rule, 0, {{"do", false, true}, {"ne", true, false}});
  EXPECT_EQ(judgement.kind, OutcomeKind::fail);
  EXPECT_NE(judgement.failure->message.find("not kept"), std::string::npos);
}

}  // namespace
}  // namespace unflake
