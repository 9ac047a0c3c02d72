#include <gmock/gmock.h>

#include "report/study_pages.h"
#include "util/json.h"

namespace unflake {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TimePoint day(int number) {
  return TimePoint(std::chrono::days(20'000 + number));
}

ClaimedFix fix_with(ClaimedFix::Verdict verdict, Tries before, Tries after) {
  ClaimedFix fix;
  fix.test = {"suite", "a"};
  fix.signature = "0123456789abcdef";
  fix.at = day(3);
  fix.commit = "c0ffee0123456789";
  fix.before = before;
  fix.after = after;
  fix.p = 0.2;
  fix.p_corrected = 0.4;
  fix.verdict = verdict;
  return fix;
}

Study example() {
  Study study;
  study.from = day(0);
  study.until = day(30);
  PrevalenceRow prevalence;
  prevalence.tests = 7'281;
  prevalence.builds = 3'000;
  prevalence.failed_builds = 2'127;
  prevalence.flaky_builds = 68;
  study.prevalence = {prevalence};
  study.flaky_tests = {{"", 10, 3, 2, 1}};
  RateRow rates;
  rates.tests = 10;
  rates.both = 3;
  rates.rates = spread_of({0.1, 0.2, 0.9});
  study.rates = {rates};
  study.run_times.resize(1);
  study.repair_times.resize(1);
  study.claimed_fixes = {fix_with(ClaimedFix::Verdict::not_lower, {20, 200}, {18, 190})};
  return study;
}

std::string text_of(const Study& study, const std::string& table) {
  return study_text(study_tables(study, {table}), study.notes, Style(false));
}

TEST(Study_text, Every_share_comes_with_its_interval) {
  EXPECT_THAT(text_of(example(), "1"),
              AllOf(HasSubstr("68 (3.2 %, 2.5..4.0 %)"), HasSubstr("7,281")));
}

TEST(Study_text, Shows_only_the_tables_that_are_wanted) {
  EXPECT_THAT(text_of(example(), "2"), AllOf(HasSubstr("Table 2."), Not(HasSubstr("Table 1."))));
  EXPECT_EQ(study_tables(example(), {}).size(), study_table_ids().size());
}

TEST(Study_text, A_fix_that_changed_nothing_is_called_so_with_its_counts) {
  EXPECT_THAT(text_of(example(), "fixes"),
              AllOf(HasSubstr("not lower: 18 of 190 after, 20 of 200 before"), HasSubstr("0.200"),
                    HasSubstr("c0ffee0123")));
}

TEST(Study_text, Never_calls_a_test_fixed) {
  Study study = example();
  study.claimed_fixes = {fix_with(ClaimedFix::Verdict::lower, {20, 200}, {0, 190}),
                         fix_with(ClaimedFix::Verdict::lower, {90, 200}, {2, 190})};
  EXPECT_THAT(text_of(study, "fixes"),
              AllOf(HasSubstr("lower\n"), HasSubstr("lower, and not gone")));
}

TEST(Study_text, Says_how_many_more_runs_would_tell) {
  Study study = example();
  study.claimed_fixes = {fix_with(ClaimedFix::Verdict::too_few_runs, {5, 100}, {0, 10})};
  study.claimed_fixes[0].more_runs = 87;
  EXPECT_THAT(text_of(study, "fixes"), HasSubstr("too few runs to tell: 87 more without"));
}

Study empty() {
  Study study;
  study.prevalence.resize(1);
  study.flaky_tests.resize(1);
  study.rates.resize(1);
  study.run_times.resize(1);
  study.repair_times.resize(1);
  return study;
}

TEST(Study_text, An_empty_study_says_what_is_missing) {
  const std::string text = study_text(study_tables(empty(), {}), {}, Style(false));
  EXPECT_THAT(text,
              AllOf(HasSubstr("no build is recorded"), HasSubstr("no test is known to be flaky"),
                    HasSubstr("no fix was claimed yet"), HasSubstr("unflake reproduce")));
}

TEST(Study_text, A_claimed_fix_with_a_commit_names_the_command_that_asks_the_failure_itself) {
  Study study = empty();
  study.claimed_fixes = {fix_with(ClaimedFix::Verdict::not_lower, {20, 200}, {18, 190})};
  study.claimed_fixes[0].signature = "8c7b35ab158e3e23";
  study.claimed_fixes[0].commit = "5b2c0356e2d1";
  EXPECT_EQ(proof_command(study.claimed_fixes[0]),
            "unflake prove 8c7b35ab --rev 5b2c0356e2~..5b2c0356e2");
  const std::string text = study_text(study_tables(study, {}), {}, Style(false));
  EXPECT_THAT(text, HasSubstr("unflake prove 8c7b35ab --rev 5b2c0356e2~..5b2c0356e2"));
  study.claimed_fixes[0].commit = "$(reboot)";
  EXPECT_EQ(proof_command(study.claimed_fixes[0]), "");
}

TEST(Study_text, The_box_plot_shows_quartiles_median_and_range) {
  EXPECT_EQ(box_text(spread_of({0, 0.25, 0.5, 0.75, 1}), 21), "|----[====#====]----|");
  EXPECT_EQ(box_text(spread_of({0.5}), 21), "          #");
}

TEST(Study_text, Names_of_tests_cannot_reach_the_terminal) {
  Study study = example();
  study.claimed_fixes[0].test.name = "\x1b[31mred";
  EXPECT_THAT(text_of(study, "fixes"), Not(HasSubstr("\x1b")));
}

TEST(Study_html, Commands_are_shown_as_code) {
  const std::string page = study_html(study_tables(empty(), {}), {});
  EXPECT_THAT(page, HasSubstr("<code>unflake run TARGET --ci</code> finds them"));
  EXPECT_THAT(page, Not(HasSubstr("`")));
}

TEST(Study_html, Names_of_tests_are_no_markup) {
  Study study = example();
  study.claimed_fixes[0].test.name = "<script>alert(1)</script>";
  const std::string page = study_html(study_tables(study, {}), {});
  EXPECT_THAT(page,
              AllOf(HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script>")), HasSubstr("<svg")));
}

TEST(Study_json, Holds_the_counts_and_the_intervals) {
  const auto json = parse_json_or_throw(study_json(example()));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["prevalence"][0]["flaky_builds_of_failed"]["count"], 68);
  EXPECT_EQ(json["claimed_fixes"][0]["rate_after"], "not lower");
  EXPECT_EQ(json["claimed_fixes"][0]["after"]["runs"], 190);
  EXPECT_TRUE(json["repair_times"][0]["median_days"].is_null());
}

}  // namespace
}  // namespace unflake
