#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "report/balance_pages.h"
#include "report/layout.h"
#include "util/json.h"

namespace unflake {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;
using Change = BalancedValue::Change;
using SettingVerdict = TriedSetting::Verdict;

TimeValue sleep_of(Duration asked) {
  TimeValue value;
  value.site = parse_site("post_test.cc:44:nanosleep").value();
  value.group = "sleep";
  value.location = "post/post_test.cc:44 in Post_Delivers_Test::TestBody";
  value.least = value.most = asked;
  value.runs = 40;
  value.visits = value.ran_out = 80;
  value.spent = 40 * 2 * asked;
  return value;
}

TimeValue timeout_of(Duration asked) {
  TimeValue value = sleep_of(asked);
  value.site = parse_site("client.cc:71:poll").value();
  value.group = "poll";
  value.location = "client.cc:71 in Client::receive";
  value.ran_out = 0;
  value.ended_early = 80;
  value.spent = 40 * 6ms;
  value.early = {2ms, 3ms, 4ms};
  return value;
}

TriedSetting setting(std::vector<Duration> values, Count failures, double median,
                     LoadLevel load = LoadLevel::idle) {
  TriedSetting one;
  one.values = std::move(values);
  one.load = load;
  one.failures = failures;
  if (failures.hits < failures.runs) one.run_time = spread_of({median, median, median + 3});
  one.verdict = failures.hits == 0 ? SettingVerdict::holds : SettingVerdict::fails;
  return one;
}

TriedSetting proposed(TriedSetting one) {
  one.is_final = true;
  return one;
}

// A sleep that a delivery in another thread needs: 200 ms, of which 42 ms are enough.
BalanceReport shortened_sleep() {
  BalanceReport report;
  report.test = {"post_test", "Post.Delivers"};
  report.method = "sequential";
  BalancedValue value;
  value.value = sleep_of(200ms);
  value.change = Change::shorten;
  value.proposed = 42ms;
  value.loads = {{LoadLevel::idle, 40ms, 38500us}, {LoadLevel::busy, 42ms, 39ms}};
  report.values = {value};
  report.base = {setting({200ms}, {0, 40}, 400)};
  report.tried = {setting({100ms}, {0, 20}, 205), setting({20ms}, {20, 20}, 0),
                  setting({38500us}, {6, 60}, 80), proposed(setting({42ms}, {0, 160}, 88)),
                  proposed(setting({42ms}, {0, 60}, 97, LoadLevel::busy))};
  mark_front(report.tried);
  report.runs = 380;
  report.at_once = 2;
  report.elapsed = 83s;
  return report;
}

Needed delivery() {
  Needed needed;
  needed.times = 160;
  needed.median = 31ms;
  needed.longest = 39ms;
  needed.at_tolerance = 41ms;
  needed.call = parse_site("post.cc:24:pthread_mutex_lock").value();
  needed.call_location = "post.cc:24";
  needed.call_thread = "post.cc:22#1";
  return needed;
}

std::string text_of(const BalanceReport& report) {
  return balance_text(report, Style(false));
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

testing::AssertionResult is_well_formed(const std::string& html) {
  std::string xml = html.substr(html.find("<html"));
  for (const char* empty : {"<meta charset=\"utf-8\">", "initial-scale=1\">"})
    xml.insert(xml.find(empty) + std::string_view(empty).size() - 1, "/");
  pugi::xml_document document;
  if (document.load_string(xml.c_str())) return testing::AssertionSuccess();
  return testing::AssertionFailure() << xml;
}

TEST(Pareto_front, Of_equal_failure_rates_only_the_fastest_is_on_it) {
  std::vector settings{setting({200ms}, {0, 100}, 400), setting({50ms}, {0, 100}, 100),
                       setting({25ms}, {73, 100}, 50), setting({20ms}, {82, 100}, 60)};
  mark_front(settings);
  EXPECT_FALSE(settings[0].on_front);
  EXPECT_TRUE(settings[1].on_front);
  EXPECT_TRUE(settings[2].on_front);
  EXPECT_FALSE(settings[3].on_front);
}

TEST(Pareto_front, Is_of_each_load_by_itself) {
  std::vector settings{setting({50ms}, {0, 100}, 100),
                       setting({50ms}, {0, 100}, 300, LoadLevel::busy)};
  mark_front(settings);
  EXPECT_TRUE(settings[0].on_front);
  EXPECT_TRUE(settings[1].on_front);
}

TEST(Pareto_front, Has_no_setting_of_which_no_run_passed) {
  std::vector settings{setting({0ms}, {20, 20}, 0), setting({0ms}, {0, 0}, 0)};
  mark_front(settings);
  EXPECT_FALSE(settings[0].on_front);
  EXPECT_FALSE(settings[1].on_front);
}

TEST(Balance_report, Saves_what_the_median_run_takes_less) {
  BalanceReport report = shortened_sleep();
  EXPECT_DOUBLE_EQ(report.saved_ms(), 312);
  report.values[0].change = Change::keep;
  EXPECT_EQ(report.saved_ms(), 0);
  EXPECT_EQ(BalanceReport().saved_ms(), 0);
}

TEST(Balance_report, Knows_its_final_setting_at_each_load) {
  const BalanceReport report = shortened_sleep();
  EXPECT_EQ(report.final_setting(LoadLevel::busy)->failures.runs, 60);
  EXPECT_EQ(report.final_setting(LoadLevel::one_core), nullptr);
}

TEST(Value_text, Is_exact) {
  EXPECT_EQ(value_text(0us), "0");
  EXPECT_EQ(value_text(42ms), "42 ms");
  EXPECT_EQ(value_text(38521us), "38.521 ms");
  EXPECT_EQ(value_text(1500ms), "1.5 s");
  EXPECT_EQ(value_text(1234567us), "1.234567 s");
}

TEST(Balance_text, Says_what_a_run_takes_before_and_after) {
  EXPECT_THAT(text_of(shortened_sleep()),
              HasSubstr("1 new value proposed: a run takes 88.0 ms instead of 400 ms (median, "
                        "idle), 312 ms or 78.0 % less"));
}

TEST(Balance_text, Says_what_the_value_asks_for_and_what_became_of_it) {
  const std::string text = text_of(shortened_sleep());
  for (const char* part : {"1. post/post_test.cc:44 in Post_Delivers_Test::TestBody: nanosleep",
                           "42 ms instead of 200 ms",
                           "asks for 200 ms; 80 visits in 40 runs, 400 ms spent here in a run",
                           "a wait: it ran out in all 80 visits"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Balance_text, Says_between_which_values_the_limit_lies) {
  const std::string text = text_of(shortened_sleep());
  EXPECT_THAT(text, HasSubstr("idle: 40 ms held, 38.5 ms is the largest that did not"));
  EXPECT_THAT(text, HasSubstr("busy: 42 ms held, 39 ms is the largest that did not"));
}

TEST(Balance_text, Says_that_nothing_failed_only_when_nothing_smaller_did) {
  BalanceReport report = shortened_sleep();
  report.values[0].loads = {{LoadLevel::idle, 20ms, std::nullopt}};
  EXPECT_THAT(text_of(report), HasSubstr("20 ms held, and so did all else that was tried"));
  report.values[0].loads[0].smallest = 40ms;
  EXPECT_THAT(text_of(report), Not(HasSubstr("so did all else that was tried")));
}

TEST(Balance_text, A_value_that_is_computed_is_a_range) {
  BalanceReport report = shortened_sleep();
  report.values[0].value.least = 12ms;
  report.values[0].value.most = 80ms;
  EXPECT_THAT(text_of(report), HasSubstr("asks for 12.0..80.0 ms, computed at run time"));
  EXPECT_THAT(text_of(report), HasSubstr("42 ms for the longest, in proportion, instead of 12.0"));
  report.values[0].value.least = 500us;
  EXPECT_THAT(text_of(report), HasSubstr("asks for 500 us..80.0 ms, computed at run time"));
}

TEST(Balance_text, A_time_out_says_how_much_room_it_has) {
  BalanceReport report = shortened_sleep();
  report.values[0].value = timeout_of(5s);
  const std::string text = text_of(report);
  EXPECT_THAT(text, HasSubstr("a time-out: it ended early in all 80 visits"));
  EXPECT_THAT(text, HasSubstr("the longest of 3 visits that ended early took 4.00 ms: the value is "
                              "1250 times as long"));
  EXPECT_THAT(text, HasSubstr("A time-out that ends early costs no time"));
}

TEST(Balance_text, A_value_that_is_both_says_how_often) {
  BalanceReport report = shortened_sleep();
  report.values[0].value.ran_out = 30;
  report.values[0].value.ended_early = 50;
  EXPECT_THAT(text_of(report), HasSubstr("of 80 visits it ran out in 30 and ended early in 50"));
}

TEST(Balance_text, A_timer_that_ends_elsewhere_is_said_to_do_so) {
  BalanceReport report = shortened_sleep();
  report.values[0].value.ran_out = 0;
  EXPECT_THAT(text_of(report), HasSubstr("armed here, ends elsewhere"));
}

TEST(Balance_text, Without_an_estimate_counting_alone_is_all_there_is) {
  EXPECT_THAT(text_of(shortened_sleep()),
              HasSubstr("proposed values, idle: 0 of 160 runs failed: the rate is below 1.9 % with "
                        "95 % confidence; "
                        "counting alone shows a rate of 0.1 % after 2995 runs without a failure"));
}

TEST(Balance_text, An_estimate_is_not_passed_off_as_counted) {
  BalanceReport report = shortened_sleep();
  report.values[0].needed = delivery();
  EXPECT_THAT(text_of(report),
              HasSubstr("the rate is below 1.9 % with 95 % confidence; the estimate of 0.1 % comes "
                        "from the measured times, not from counting"));
}

TEST(Balance_text, An_estimate_is_for_the_idle_machine_and_needs_enough_times) {
  BalanceReport report = shortened_sleep();
  report.values[0].needed = delivery();
  EXPECT_THAT(text_of(report), HasSubstr("proposed values, busy: 0 of 60 runs failed: the rate is "
                                         "below 4.9 % with 95 % confidence; counting alone"));
  report.values[0].needed->times = 12;
  EXPECT_THAT(text_of(report), Not(HasSubstr("comes from the measured times")));
}

TEST(Balance_text, Passes_with_even_shorter_values_count_but_are_not_added_up) {
  BalanceReport report = shortened_sleep();
  for (const Duration shorter : {Duration(41ms), Duration(41500us)}) {
    report.tried.push_back(setting({shorter}, {0, 500}, 88));
    report.tried.back().verdict = TriedSetting::Verdict::holds;
  }
  EXPECT_THAT(text_of(report), HasSubstr("0 of 160 runs failed, and 0 of 500 with even shorter "
                                         "values: the rate is below 0.60 %"));
}

TEST(Balance_text, Enough_runs_show_the_tolerance) {
  BalanceReport report = shortened_sleep();
  report.tolerance = 0.05;
  EXPECT_THAT(text_of(report), HasSubstr("below 1.9 % with 95 % confidence, within the tolerance "
                                         "of 5 %"));
}

TEST(Balance_text, A_sleep_that_is_needed_is_better_a_wait) {
  BalanceReport report = shortened_sleep();
  EXPECT_THAT(text_of(report), HasSubstr("Something needs this sleep; which event it is was not "
                                         "seen"));
  report.values[0].needed = delivery();
  const std::string text = text_of(report);
  EXPECT_THAT(text, HasSubstr("really waits for pthread_mutex_lock at post.cc:24 in thread "
                              "`post.cc:22#1`: that came after 31.0 ms in the median of 160 runs, "
                              "after 39.0 ms at the latest; estimated from these times, 0.1 % of "
                              "runs need more than 41.0 ms"));
  EXPECT_THAT(text, HasSubstr("wait for pthread_mutex_lock at post.cc:24 in thread `post.cc:22#1` "
                              "itself"));
  EXPECT_THAT(text, HasSubstr("`unflake repair`"));
}

TEST(Balance_text, A_wait_that_nothing_needs_may_look_for_what_must_not_happen) {
  BalanceReport report = shortened_sleep();
  report.values[0].is_unneeded = true;
  const std::string text = text_of(report);
  EXPECT_THAT(text, HasSubstr("passes with no time here at all"));
  EXPECT_THAT(text, HasSubstr("must NOT happen"));
  EXPECT_THAT(text, HasSubstr("counting alone shows"));
  EXPECT_THAT(text, Not(HasSubstr("unflake repair")));
}

TEST(Balance_text, A_timer_that_nothing_needs_is_not_to_be_set_to_never) {
  BalanceReport report = shortened_sleep();
  report.values[0].value.group = "timer";
  report.values[0].proposed = 0ms;
  report.values[0].is_unneeded = true;
  EXPECT_THAT(text_of(report), HasSubstr("over at once instead of 200 ms"));
  EXPECT_THAT(text_of(report), HasSubstr("In the source 0 means never"));
}

TEST(Balance_text, A_test_that_is_flaky_anyway_says_how_often_and_how) {
  BalanceReport report = shortened_sleep();
  report.base = {setting({200ms}, {4, 100}, 400)};
  report.base_failures = {"post_test.cc:51: port in use", "2", "3", "4", "5", "6", "7"};
  report.tried[3].failures = {5, 160};
  report.tried[3].new_failures = 1;
  report.tried[3].refused_rate = 0.09;
  const std::string text = text_of(report);
  for (const char* part :
       {"own values too (idle: 4 of 100 runs failed (4.0 %, 95 % interval 1.1..9.9 %)",
        "The test fails with its own values too", "That was accounted for",
        "fails anyway: post_test.cc:51: port in use", "and in 2 more ways",
        "5 of 160 runs failed (3.1 %, 95 % interval 1.0..7.1 %)",
        "1 of them as the own values did not show",
        "not clearly more often than with the own values; 9.0 % or more would have been refused "
        "with 95 % confidence"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Balance_text, Third_party_values_are_shown_and_left_alone) {
  BalanceReport report = shortened_sleep();
  BalancedValue foreign;
  foreign.value = timeout_of(5s);
  foreign.value.is_project = false;
  report.values.push_back(foreign);
  const std::string text = text_of(report);
  EXPECT_THAT(text, HasSubstr("in third-party code\n  client.cc:71 in Client::receive: poll: asks "
                              "for 5 s; 80 visits in 40 runs"));
  EXPECT_THAT(text, HasSubstr("--site SITE changes one"));
  report.values.erase(report.values.begin());
  EXPECT_THAT(text_of(report), HasSubstr("1 time value seen, all in third-party code"));
}

TEST(Balance_text, A_test_without_time_values_says_what_was_looked_at) {
  BalanceReport report;
  report.test = {"a", "b"};
  report.runs = 3;
  EXPECT_THAT(text_of(report), HasSubstr("no time value to change: in 3 runs no call passed a time "
                                         "to a sleep, a timed wait, a poll, a socket or a timer"));
}

TEST(Balance_text, A_value_that_is_kept_says_why) {
  BalanceReport report = shortened_sleep();
  report.values[0].change = Change::keep;
  report.values[0].reason = "190 ms did not hold";
  EXPECT_THAT(text_of(report), HasSubstr("keep 200 ms: 190 ms did not hold"));
  EXPECT_THAT(text_of(report), HasSubstr("nothing to propose: 1 time value seen, 1 tried"));
}

TEST(Balance_text, What_else_an_edit_changes_is_told) {
  BalanceReport report = shortened_sleep();
  ValueInSource source{"post/post_test.cc", 44, "sleep_for(kDelay);", "200ms", "42ms", ""};
  source.caution = "`kDelay` is used at 3 other places";
  report.values[0].source = source;
  EXPECT_THAT(text_of(report), HasSubstr("mind: `kDelay` is used at 3 other places"));
  EXPECT_THAT(balance_html(report), HasSubstr("is used at 3 other places"));
  EXPECT_THAT(balance_json(report), HasSubstr("is used at 3 other places"));
}

TEST(Balance_text, Without_a_run_nothing_is_known) {
  EXPECT_THAT(text_of(BalanceReport()), HasSubstr("nothing is known: no run was made"));
}

TEST(Balance_text, The_edit_is_shown_in_its_line) {
  BalanceReport report = shortened_sleep();
  ValueInSource source{"post/post_test.cc", 44, "sleep_for(200ms);", "200ms", "42ms", ""};
  report.values[0].source = source;
  EXPECT_THAT(text_of(report), HasSubstr("  post/post_test.cc:44\n    - sleep_for(200ms);\n    + "
                                         "sleep_for(42ms);\n"));
  report.values[0].source->text = "sleep_for(pick(200ms, 200ms));";
  EXPECT_THAT(text_of(report), HasSubstr("    - 200ms\n    + 42ms\n"));
  report.values[0].source->why_not = "a macro makes it";
  EXPECT_THAT(text_of(report), HasSubstr("post/post_test.cc:44: not edited: a macro makes it"));
}

TEST(Balance_text, Half_of_the_edits_are_not_what_was_measured) {
  BalanceReport report = shortened_sleep();
  report.values[0].source = {"post_test.cc", 44, "sleep_for(200ms);", "200ms", "42ms", ""};
  EXPECT_THAT(text_of(report), Not(HasSubstr("measured together")));
  report.values.push_back(report.values[0]);
  EXPECT_THAT(text_of(report), Not(HasSubstr("measured together")));
  report.values[1].value.site.line = 51;
  report.values[1].source->why_not = "a macro makes it";
  EXPECT_THAT(text_of(report), HasSubstr("the edits alone were not: change post_test.cc:51"));
}

TEST(Balance_text, The_front_has_counts_intervals_and_times) {
  const BalanceTable table = settings_table(shortened_sleep(), false);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_THAT(table.header, ElementsAre("", "load", "value 1", "failed", "95 % interval",
                                        "mean run", "median run"));
  EXPECT_THAT(table.rows[0],
              ElementsAre("now", "idle", "200 ms", "0/40", "0.0..8.8 %", "401 ms", "400 ms"));
  EXPECT_THAT(table.rows[1], ElementsAre("proposed", "idle", "42 ms", "0/160", "0.0..2.3 %",
                                         "89.0 ms", "88.0 ms"));
  EXPECT_THAT(table.rows[2],
              ElementsAre("proposed", "busy", "42 ms", "0/60", "0.0..6.0 %", "98.0 ms", "97.0 ms"));
  EXPECT_EQ(table.rows[3][2], "38.5 ms");
  EXPECT_THAT(table.remarks, ElementsAre(HasSubstr("2 more were tried")));
}

TEST(Balance_text, All_settings_are_shown_on_demand) {
  const BalanceTable table = settings_table(shortened_sleep(), true);
  EXPECT_EQ(table.rows.size(), 6u);
  EXPECT_THAT(table.rows, Contains(ElementsAre("", "idle", "20 ms", "20/20", "83.2..100.0 %", "-",
                                               "-", "does not hold")));
  EXPECT_THAT(table.remarks, testing::IsEmpty());
}

TEST(Balance_text, The_own_values_are_measured_though_nothing_was_tried) {
  BalanceReport report = shortened_sleep();
  report.tried.clear();
  const BalanceTable table = settings_table(report, false);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_THAT(table.rows[0], ElementsAre("now", "idle", "0/40", "0.0..8.8 %", "401 ms", "400 ms"));
}

TEST(Balance_text, A_value_that_is_too_short_says_what_a_longer_one_costs) {
  BalanceReport report = shortened_sleep();
  report.values[0].change = Change::raise;
  report.values[0].proposed = 260ms;
  EXPECT_THAT(text_of(report), HasSubstr("260 ms instead of 200 ms"));
  EXPECT_THAT(text_of(report), HasSubstr("takes more time in every run"));
  report.values[0].value = timeout_of(200ms);
  EXPECT_THAT(text_of(report), HasSubstr("takes more time only in runs that need it"));
}

TEST(Balance_text, Of_many_values_the_table_has_some_and_says_so) {
  BalanceReport report = shortened_sleep();
  report.values.assign(9, report.values[0]);
  report.tried = {setting(std::vector<Duration>(9, 1ms), {0, 9}, 5)};
  mark_front(report.tried);
  const BalanceTable table = settings_table(report, false);
  EXPECT_EQ(table.header.size(), 2 + 6 + 4u);
  EXPECT_THAT(table.remarks, ElementsAre(HasSubstr("3 more values with less time")));
}

TEST(Balance_text, Says_how_the_runs_were_made) {
  BalanceReport report = shortened_sleep();
  report.interrupted = report.out_of_budget = true;
  report.scale = 1.5;
  report.notes = {"the machine was busy"};
  const std::string text = text_of(report);
  for (const char* part :
       {"380 runs in 83.0 s, up to 2 at once, method sequential, tolerance 0.1 %", "interrupted:",
        "is used up", "1.5 times what this machine needs (--scale)", "note: the machine was busy"})
    EXPECT_THAT(text, HasSubstr(part));
}

ClaimReport claim(ClaimReport::Answer answer) {
  ClaimReport report;
  report.test = {"post_test", "Post.Delivers"};
  report.value = sleep_of(200ms);
  report.from = 100ms;
  report.to = 200ms;
  report.runs = 200;
  ClaimReport::AtLoad at;
  at.with_from = {10, 100};
  at.with_to = {9, 100};
  at.time_with_from = spread_of({250});
  at.time_with_to = spread_of({350});
  at.p_value = 0.5;
  at.detectable = 0.012;
  at.more_runs = 400;
  at.answer = answer;
  report.loads = {at};
  return report;
}

TEST(Claim_text, Says_that_a_fix_that_changes_nothing_is_none) {
  const std::string text = claim_text(claim(ClaimReport::Answer::no_difference), Style(false));
  for (const char* part :
       {"200 ms instead of 100 ms makes no difference that shows to how often the test fails",
        "idle, 100 ms: 10 of 100 runs failed (10.0 %, 95 % interval 4.9..17.6 %); median passing "
        "run 250 ms",
        "idle: no difference (p = 0.500); a drop to 1.2 % or less would have shown with 95 % "
        "confidence; a passing run takes 100 ms more (median)"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Claim_text, Says_whether_it_helps_and_what_would_tell) {
  using Answer = ClaimReport::Answer;
  const auto text = [](Answer answer) { return claim_text(claim(answer), Style(false)); };
  EXPECT_THAT(text(Answer::fails_less), HasSubstr("makes the test fail less often (idle)"));
  EXPECT_THAT(text(Answer::fails_more), HasSubstr("makes the test fail more often (idle)"));
  EXPECT_THAT(text(Answer::cannot_tell),
              HasSubstr("400 more runs with 200 ms would, if all of them pass"));
  EXPECT_THAT(claim_text(ClaimReport(), Style(false)), HasSubstr("nothing was measured"));
}

TEST(Claim_text, Says_when_there_was_nothing_to_fix) {
  ClaimReport report = claim(ClaimReport::Answer::cannot_tell);
  report.loads[0].with_from = report.loads[0].with_to = {0, 320};
  report.loads[0].more_runs = 0;
  report.notes = {"the time was used up"};
  const std::string text = claim_text(report, Style(false));
  EXPECT_THAT(text, HasSubstr("the test failed with neither"));
  EXPECT_THAT(text, HasSubstr("0 of 320 runs failed (rate below 0.94 % with 95 % confidence)"));
  EXPECT_THAT(text, HasSubstr("note: the time was used up"));
}

SuiteBalance suite() {
  SuiteBalance suite;
  suite.target = "post_test";
  suite.entries.resize(2);
  suite.entries[0].test = {"post_test", "Post.Delivers"};
  suite.entries[0].before_ms = 400;
  suite.entries[0].after_ms = 88;
  suite.entries[0].report = shortened_sleep();
  suite.entries[1].test = {"post_test", "Post.<Opens>"};
  suite.entries[1].before_ms = 12;
  suite.entries[1].why_not = "spends 0 us in time values";
  suite.runs = 400;
  suite.elapsed = 90s;
  return suite;
}

TEST(Suite_balance, Ranks_the_tests_and_sums_up_what_was_measured) {
  const std::string text = suite_balance_text(suite(), Style(false));
  for (const char* part :
       {"post_test: 312 ms saved per run of the suite, in 1 of 2 tests",
        "post_test:Post.Delivers  312 ms  400 ms -> 88.0 ms  1 of 1",
        "12.0 ms            -               spends 0 us in time values",
        "400 ms with their own values and 88.0 ms with the proposed ones", "400 runs in 90.0 s"})
    EXPECT_THAT(text, HasSubstr(part));
}

// The sleep of `shortened_sleep` and a wait of 100 ms in which nothing happens.
BalanceReport shortened_silence() {
  BalanceReport report = shortened_sleep();
  BalancedValue quiet;
  quiet.value = timeout_of(100ms);
  std::swap(quiet.value.ran_out, quiet.value.ended_early);
  quiet.value.early.clear();
  quiet.value.could_end_early = true;
  quiet.change = Change::shorten;
  quiet.is_unneeded = true;
  report.values.push_back(quiet);
  report.base = {setting({200ms, 100ms}, {0, 40}, 500)};
  TriedSetting careful = setting({42ms, 100ms}, {0, 10}, 188);
  careful.is_careful = true;
  report.tried = {proposed(setting({42ms, 0ms}, {0, 160}, 88)), careful};
  return report;
}

TEST(Balance_text, Tells_what_is_saved_when_quiet_waits_keep_their_time) {
  const std::string text = text_of(shortened_silence());
  for (const char* part :
       {"412 ms or 82.4 % less; 312 ms less when waits that nothing ended early keep their time",
        "\n  careful   idle", "careful: as proposed, but waits that nothing ended early"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Balance_text, A_quiet_wait_that_is_shortened_may_show_less) {
  BalanceReport report = shortened_silence();
  report.values[1].is_unneeded = false;
  report.values[1].proposed = 5ms;
  EXPECT_THAT(text_of(report), HasSubstr("does NOT happen, a shorter one shows less"));
  report.tried.pop_back();
  EXPECT_THAT(text_of(report), HasSubstr("; all of it in waits that nothing ended early"));
}

TEST(Balance_text, A_place_that_passes_on_times_names_its_callers_and_no_number) {
  BalanceReport report = shortened_sleep();
  BalancedValue& value = report.values[0];
  value.value.least = 10us;
  value.value.most = 1s;
  for (int i = 0; i < 12; ++i) value.value.callers.push_back({"a.cc:7 in Test", 1s, 1s, 40, 40s});
  value.change = Change::not_searched;
  value.reason = "because";
  const std::string text = text_of(report);
  for (const char* part : {"10 us..1.00 s, as its 12 callers say, left as it is: because",
                           "a.cc:7 in Test asks for 1 s; 40 visits, 1.00 s spent in a run",
                           "and 2 more callers with less time: --json has all"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("in proportion")));
  value.change = Change::shorten;
  value.proposed = 250ms;
  EXPECT_THAT(text_of(report), HasSubstr("  0.25 times what any of its 12 callers asks for"));
  EXPECT_EQ(
      parse_json_or_throw(balance_json(report))["values"][0]["callers"][0]["asked_us"]["most"],
      1'000'000);
}

TEST(Suite_balance, Does_not_count_what_may_weaken_a_test) {
  SuiteBalance all = suite();
  all.entries[1].why_not.clear();
  all.entries[1].before_ms = 500;
  all.entries[1].after_ms = 188;
  all.entries[1].report = shortened_silence();
  SuiteBalance::Entry silent = all.entries[1];
  silent.test = {"post_test", "Post.Is_silent"};
  silent.after_ms = 500;
  silent.report->tried.pop_back();
  all.entries.push_back(silent);
  const std::string text = suite_balance_text(all, Style(false));
  for (const char* part :
       {"post_test: 624 ms saved per run of the suite, in 2 of 3 tests",
        "312 ms  500 ms -> 188 ms   1 of 2",
        "not counted: 100 ms with a shorter wait that nothing ended early (client.cc:71:poll): it "
        "may test less",
        "-       500 ms             1 of 2",
        "another 512 ms would be saved by shorter waits that nothing ended early"})
    EXPECT_THAT(text, HasSubstr(part));
  const auto json = parse_json_or_throw(suite_balance_json(all));
  EXPECT_EQ(json["tests"][1]["saved_ms"], 312);
  EXPECT_EQ(json["tests"][1]["report"]["saved_ms"], 412);
  EXPECT_EQ(json["tests"][1]["report"]["values"][1]["may_weaken"], true);
}

TEST(Suite_balance, Without_tests_saves_nothing) {
  EXPECT_THAT(suite_balance_text(SuiteBalance(), Style(false)),
              HasSubstr("nothing to save in 0 tests"));
  EXPECT_TRUE(is_well_formed(suite_balance_html(SuiteBalance())));
}

TEST(Balance_plot, Has_points_limits_marks_and_a_line) {
  const std::string svg = balance_svg(shortened_sleep(), 0);
  EXPECT_EQ(count_of(svg, "<g class=\"point idle\""), 5u);
  EXPECT_EQ(count_of(svg, "<g class=\"point busy\""), 1u);
  EXPECT_EQ(count_of(svg, "<rect class=\"limit"), 2u);
  EXPECT_EQ(count_of(svg, "<polyline class=\"times idle\""), 1u);
  for (const char* part : {">now 200 ms<", ">proposed 42 ms<",
                           "38.5 ms, idle: 6 of 60 runs failed (10.0 %, 95 % interval"})
    EXPECT_THAT(svg, HasSubstr(part));
}

TEST(Balance_plot, Has_room_for_zero_on_a_wide_axis) {
  BalanceReport report = shortened_sleep();
  report.tried.push_back(setting({0us}, {3, 20}, 4));
  report.tried.push_back(setting({1us}, {3, 20}, 4));
  const std::string svg = balance_svg(report, 0);
  EXPECT_THAT(svg, HasSubstr(">0</text>"));
  EXPECT_THAT(svg, HasSubstr(">1 ms</text>"));
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str()));
}

TEST(Balance_plot, Has_numbers_whatever_was_measured) {
  BalanceReport report = shortened_sleep();
  report.values[0].value.most = 0us;
  report.values[0].proposed = 0us;
  report.base = {setting({0us}, {0, 0}, 0)};
  report.tried = {setting({0us}, {5, 5}, 0), setting({1us}, {5, 5}, 0), setting({}, {0, 5}, 0)};
  for (const std::string& svg : {balance_svg(report, 0), balance_svg(shortened_sleep(), 0)}) {
    ASSERT_NE(svg, "");
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(Balance_plot, Without_two_values_is_nothing) {
  BalanceReport report = shortened_sleep();
  report.tried.clear();
  EXPECT_EQ(balance_svg(report, 0), "");
  EXPECT_EQ(balance_svg(report, 7), "");
}

TEST(Balance_plot, Pales_settings_in_which_other_values_differ_too) {
  BalanceReport report = shortened_sleep();
  report.values.push_back(report.values[0]);
  report.tried = {setting({100ms, 200ms}, {0, 9}, 5), setting({50ms, 50ms}, {3, 9}, 5)};
  EXPECT_EQ(count_of(balance_svg(report, 0), "point idle joint"), 1u);
}

TEST(Balance_page, Says_what_the_text_says) {
  BalanceReport report = shortened_sleep();
  report.values[0].needed = delivery();
  const BalanceWords words = words_of(report);
  const std::string page = balance_html(report);
  const BalancedValueWords& value = words.values.at(0);
  for (const auto* lines : {&value.facts, &value.evidence, &value.advice, &words.measured,
                            &words.meaning, &words.notes})
    for (const std::string& line : *lines) EXPECT_THAT(page, HasSubstr(html_prose(line)));
  EXPECT_EQ(count_of(page, "<svg class=\"balance\""), 1u);
  EXPECT_TRUE(is_well_formed(page));
}

TEST(Balance_page, Needs_nothing_else) {
  const std::string page = suite_balance_html(suite());
  for (const char* part : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_TRUE(is_well_formed(page));
}

BalanceReport hostile_balance() {
  BalanceReport report = shortened_sleep();
  const std::string text =
      "</section><img src=x onerror='\"&\x1b\x01\xff" + std::string(1 << 16, 'x');
  report.test.name = report.method = text;
  report.base_failures = report.notes = {text};
  BalancedValue& value = report.values[0];
  value.value.location = value.value.group = value.value.site.api = value.reason = text;
  value.needed = delivery();
  value.needed->call_location = value.needed->call_thread = text;
  value.source = ValueInSource{text, 1, text, "src", text, ""};
  report.base[0].failures.hits = 1;
  return report;
}

TEST(Balance_page, Nothing_from_a_test_is_markup) {
  SuiteBalance all = suite();
  all.target = all.entries[1].why_not = hostile_balance().test.name;
  all.entries[0].report = hostile_balance();
  all.entries[0].test = hostile_balance().test;
  for (const std::string& page : {balance_html(hostile_balance()), suite_balance_html(all)}) {
    for (const char* part : {"</section><img", "\x1b", "\x01", "\xff"})
      EXPECT_THAT(page, Not(HasSubstr(part)));
    EXPECT_TRUE(is_well_formed(page));
    EXPECT_LT(page.size(), 60'000u);
  }
}

TEST(Balance_text, Hostile_names_are_made_safe) {
  const std::string text = text_of(hostile_balance());
  for (const char* part : {"\x1b", "\x01", "\xff"}) EXPECT_THAT(text, Not(HasSubstr(part)));
  EXPECT_LT(text.size(), 20'000u);
}

TEST(Balance_JSON, Has_what_machines_read) {
  BalanceReport report = shortened_sleep();
  report.values[0].needed = delivery();
  const auto json = parse_json_or_throw(balance_json(report));
  EXPECT_EQ(json["format"], "unflake-balance");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["kind"], "test");
  EXPECT_EQ(json["runs"], 380);
  EXPECT_EQ(json["saved_ms"], 312);
  const auto& value = json["values"][0];
  EXPECT_EQ(value["site"], "post_test.cc:44:nanosleep");
  EXPECT_EQ(value["use"], "wait");
  EXPECT_EQ(value["change"], "shorten");
  EXPECT_EQ(value["proposed_us"], 42'000);
  EXPECT_EQ(value["asked_us"]["most"], 200'000);
  EXPECT_EQ(value["spent_us_per_run"], 400'000);
  EXPECT_EQ(value["loads"][1]["load"], "busy");
  EXPECT_EQ(value["loads"][1]["smallest_us"], 42'000);
  EXPECT_EQ(value["loads"][1]["fails_us"], 39'000);
  EXPECT_EQ(value["needed"]["event"], "post.cc:24:pthread_mutex_lock");
  EXPECT_TRUE(value["source"].is_null());
}

TEST(Balance_JSON, Has_every_setting_with_its_interval) {
  const auto json = parse_json_or_throw(balance_json(shortened_sleep()));
  ASSERT_EQ(json["tried"].size(), 5u);
  const auto& failed = json["tried"][1];
  EXPECT_EQ(failed["values_us"], std::vector{20'000});
  EXPECT_EQ(failed["failures"], 20);
  EXPECT_EQ(failed["verdict"], "fails");
  EXPECT_TRUE(failed["median_ms"].is_null());
  const auto& last = json["tried"][3];
  EXPECT_EQ(last["final"], true);
  EXPECT_EQ(last["on_front"], true);
  EXPECT_NEAR(last["interval"][1], 0.0228, 1e-4);
  EXPECT_EQ(json["base"][0]["runs"], 40);
}

TEST(Balance_JSON, Of_claims_and_suites_says_which_it_is) {
  const auto of_claim = parse_json_or_throw(claim_json(claim(ClaimReport::Answer::no_difference)));
  EXPECT_EQ(of_claim["kind"], "claim");
  EXPECT_EQ(of_claim["loads"][0]["from"]["failures"], 10);
  EXPECT_EQ(of_claim["loads"][0]["answer"], "no_difference");
  const auto of_suite = parse_json_or_throw(suite_balance_json(suite()));
  EXPECT_EQ(of_suite["kind"], "suite");
  EXPECT_EQ(of_suite["tests"][0]["report"]["values"][0]["proposed_us"], 42'000);
  EXPECT_TRUE(of_suite["tests"][1]["report"].is_null());
}

TEST(Balance_JSON, Hostile_names_are_valid) {
  EXPECT_NO_THROW(parse_json_or_throw(balance_json(hostile_balance())));
}

}  // namespace
}  // namespace unflake
