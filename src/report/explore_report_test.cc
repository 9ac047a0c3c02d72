#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/search_text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

ExploreReport sound_report() {
  ExploreReport report;
  report.test = {"bell", "Bell.rings"};
  report.answer = ExploreReport::Answer::passes_in_all;
  report.schedules = 240;
  report.elapsed = 2s;
  report.threads = 3;
  report.switch_points = 17;
  report.orders = 12;
  report.sampled = 240;
  report.pairs = report.pairs_in_both_orders = 4;
  report.bounded = {{0, 6, true, ""}, {std::nullopt, 12, true, ""}};
  report.tries = {{Sampler::surw, 100, 0}};
  return report;
}

ExploreReport failing_report() {
  ExploreReport report = sound_report();
  report.answer = ExploreReport::Answer::fails;
  report.bounded.clear();
  ExploreReport::Found found;
  found.failure.kind = FailureKind::assertion;
  found.failure.file = "bell.cc";
  found.failure.line = 12;
  found.signature = "0123456789abcdef";
  found.sampler = Sampler::pos;
  found.after_schedules = 7;
  found.switches = 1;
  found.switches_at_first = 31;
  found.came_back = found.repeats = 5;
  found.schedule.decisions = {{4, 2}};
  OrderConstraint order;
  order.thread = 1;
  order.site.file = order.other_site.file = "bell.cc";
  order.site.line = 5;
  order.other = 2;
  order.other_site.line = 9;
  found.orders = {order};
  found.sentences = {"the read at bell.cc:9 by b\033[31m comes before the write at bell.cc:5 by a"};
  found.deadlock = {"a waits for b"};
  found.stall = 30ms;
  report.found = found;
  report.rates = {{Sampler::surw, 50, 10}, {Sampler::pos, 50, 0}};
  return report;
}

TEST(ExploreText, says_that_all_schedules_pass) {
  ExploreReport report = sound_report();
  report.looked_for_accesses = true;
  report.access_sites = 3;
  const std::string text = explore_text(report, Style(false));
  EXPECT_THAT(text, HasSubstr("bell:Bell.rings passes in all schedules"));
  EXPECT_THAT(text, HasSubstr("all schedules with at most 0 preemptions pass: 6 run"));
  EXPECT_THAT(text, HasSubstr("all schedules pass: 12 run"));
  EXPECT_THAT(text, HasSubstr("4 of 4 pairs of places that"));
  EXPECT_THAT(text, Not(HasSubstr("the next schedule")));
}

TEST(ExploreText, does_not_call_sound_what_was_exchanged_at_calls_only) {
  const std::string text = explore_text(sound_report(), Style(false));
  EXPECT_THAT(text, HasSubstr("bell:Bell.rings passes in all orders of its calls"));
  EXPECT_THAT(text, HasSubstr("at calls only"));
  EXPECT_THAT(text, Not(HasSubstr("SOUND")));
}

TEST(ExploreText, says_when_the_test_fails_and_how_often) {
  const std::string text = explore_text(failing_report(), Style(false));
  EXPECT_THAT(text, HasSubstr("bell.cc:12"));
  EXPECT_THAT(text, HasSubstr("when the read at bell.cc:9 by b\\x1b[31m comes before"));
  EXPECT_THAT(text, HasSubstr("a waits for b"));
  EXPECT_THAT(text, HasSubstr("30.0 ms late"));
  EXPECT_THAT(text, HasSubstr("found by pos after 7 schedules; came back 5 of 5 times"));
  EXPECT_THAT(text, HasSubstr("20.0 %"));
}

TEST(ExploreText, blames_no_test_for_what_happens_under_control_alone) {
  ExploreReport report = failing_report();
  report.found->free_runs = 5;
  EXPECT_THAT(explore_text(report, Style(false)), HasSubstr("bell:Bell.rings, but only under"));
  EXPECT_THAT(explore_text(report, Style(false)), HasSubstr("0 of 5 runs on free cores failed"));
  report.found->free_failures = 5;
  EXPECT_THAT(explore_text(report, Style(false)), HasSubstr("it fails by itself"));
}

TEST(ExploreText, counts_no_exchanges_of_what_was_not_made_small) {
  ExploreReport report = failing_report();
  report.found->came_back = 0;
  EXPECT_THAT(explore_text(report, Style(false)), Not(HasSubstr("exchanges of threads are left")));
}

TEST(ExploreText, tells_what_is_left_when_it_is_not_all) {
  ExploreReport report = sound_report();
  report.answer = ExploreReport::Answer::budget_over;
  report.orders_seen_once = 60;
  report.bounded = {{2, 10'000, false, "there are more schedules"}};
  const std::string text = explore_text(report, Style(false));
  EXPECT_THAT(text, HasSubstr("a new order in about 25.0 % of cases"));
  EXPECT_THAT(text, HasSubstr("only 10000: there are more schedules"));
}

TEST(ExploreText, says_why_a_test_cannot_be_controlled) {
  ExploreReport report;
  report.answer = ExploreReport::Answer::not_controlled;
  report.why = "a static binary";
  EXPECT_THAT(explore_text(report, Style(false)),
              HasSubstr("cannot be controlled: a static binary"));
}

TEST(ExploreText, what_did_not_come_back_is_no_finding) {
  ExploreReport report = failing_report();
  report.found->came_back = 0;
  EXPECT_THAT(explore_text(report, Style(false)), HasSubstr("not again under the same schedule"));
}

TEST(ExploreJson, has_the_schedule_and_the_counts) {
  const auto json = nlohmann::json::parse(explore_json(failing_report()));
  EXPECT_EQ("unflake-explore", json["format"]);
  EXPECT_EQ("fails", json["answer"]);
  EXPECT_EQ(240, json["schedules"]);
  EXPECT_EQ(nlohmann::json::parse("[[4, 2]]"), json["failure"]["decisions"]);
  EXPECT_EQ("bell.cc:9", json["failure"]["orders"][0]["after_site"]);
  EXPECT_EQ(30.0, json["failure"]["stall_ms"]);
  EXPECT_EQ(10, json["rates"][0]["failures"]);
}

}  // namespace
}  // namespace unflake
