#include "report/search_text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace unflake {
namespace {

using namespace std::chrono_literals;

struct Page : Sink {
  std::string text;
  void write(std::string_view bytes) override { text += bytes; }
};

TrialEnded trial(int number, OutcomeKind kind) {
  TrialEnded ended;
  ended.number = number;
  ended.why = "the baker begins late";
  ended.fired = true;
  ended.plan.interventions.emplace_back();
  ended.result.outcome.kind = kind;
  ended.result.process.end = ProcessResult::End::exited;
  if (kind != OutcomeKind::pass) {
    Failure failure;
    failure.file = "bread.cc";
    failure.line = 7;
    failure.expression = "baked";
    ended.result.outcome.failures = {failure};
  }
  return ended;
}

TrialEnded profiled(OutcomeKind kind) {
  TrialEnded ended = trial(1, kind);
  ended.purpose = TrialEnded::Purpose::profile;
  return ended;
}

std::string told(const std::vector<Event>& events, bool live = false) {
  Page page;
  {
    SearchReport report(page, false, live);
    for (const Event& event : events) report.on(event);
  }
  return page.text;
}

TEST(SearchReport, Keeps_the_column_whatever_the_outcome_and_the_number) {
  const std::string text =
      told({trial(1, OutcomeKind::pass), trial(22, OutcomeKind::crash),
            trial(333, OutcomeKind::timeout), trial(4444, OutcomeKind::skipped)});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.find('[') == 14u || line.starts_with("              bread")) << line;
}

TEST(SearchReport, Tells_a_failure_once_as_long_as_it_stays_the_same) {
  const std::string text =
      told({trial(1, OutcomeKind::fail), trial(2, OutcomeKind::pass), trial(3, OutcomeKind::fail)});
  EXPECT_NE(text.find("bread.cc:7"), std::string::npos);
  EXPECT_EQ(text.find("bread.cc:7"), text.rfind("bread.cc:7"));
}

TEST(SearchReport, Counts_the_runs_without_delays) {
  const std::string text =
      told({profiled(OutcomeKind::fail), profiled(OutcomeKind::pass), SearchStep{"guided", "go"}});
  EXPECT_NE(text.find("1 of 2 runs failed\n"), std::string::npos) << text;
}

TEST(SearchReport, Does_not_count_a_run_that_was_not_made) {
  TrialEnded refused = profiled(OutcomeKind::fail);
  refused.result.process.end = ProcessResult::End::not_started;
  refused.result.process.error = "there is no site bread.cc:99";
  const std::string text = told({refused, profiled(OutcomeKind::pass), SearchStep{"guided", "go"}});
  EXPECT_NE(text.find("there is no site bread.cc:99\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0 of 1 run failed\n"), std::string::npos) << text;
}

TEST(SearchReport, Leaves_no_count_behind_on_a_terminal) {
  const std::string text = told({profiled(OutcomeKind::pass)}, true);
  EXPECT_NE(text.find("run 1 without delays"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;
}

TEST(SearchReport, Writes_no_control_characters_into_a_log) {
  TrialEnded hostile = trial(1, OutcomeKind::fail);
  hostile.why = "\x1b[2J";
  hostile.result.outcome.failures[0].expression = "a\r\x1b[31m";
  const std::string text = told({profiled(OutcomeKind::pass), hostile,
                                 Note{Note::Level::info, "x\x1b: y", "\x1b"}, SearchEnded{}});
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos) << text;
}

TEST(SearchReport, Puts_the_topic_of_a_note_into_the_column_of_words) {
  EXPECT_EQ(told({Note{Note::Level::info, "reached: 3 places", ""}}), "      reached 3 places\n");
  EXPECT_EQ(told({Note{Note::Level::info, "only the end was read", ""}}),
            "info: only the end was read\n");
}

TEST(SearchReport, Calls_a_failure_a_failure_and_says_when_it_is_not_the_one) {
  TrialEnded hit = trial(1, OutcomeKind::fail);
  hit.hit = true;
  const TrialEnded other = trial(2, OutcomeKind::crash);
  SearchStarted any, given;
  any.test = given.test = std::make_shared<unflake::Test>();
  given.wanted = "bread.cc:9";
  const std::string wide = told({any, hit, other});
  EXPECT_NE(wide.find("1 FAIL "), std::string::npos) << wide;
  EXPECT_NE(wide.find("the baker begins late (found already)"), std::string::npos) << wide;
  EXPECT_EQ(wide.find("HIT"), std::string::npos) << wide;
  const std::string narrow = told({given, hit, other});
  EXPECT_NE(narrow.find("the baker begins late (another failure)"), std::string::npos) << narrow;
  EXPECT_EQ(narrow.find("the baker begins late (another failure)"),
            narrow.rfind("the baker begins late ("))
      << narrow;
}

TEST(SearchReport, Says_what_is_looked_for_when_it_is_a_pass) {
  TrialEnded passes = trial(1, OutcomeKind::pass), fails = trial(2, OutcomeKind::fail);
  passes.hit = passes.wants_pass = fails.wants_pass = true;
  const std::string text = told({passes, fails});
  EXPECT_NE(text.find("the baker begins late (passes now)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("found already"), std::string::npos) << text;
}

TEST(ReproText, Calls_a_slack_that_was_not_measured_a_bound) {
  Repro repro;
  repro.slack = Slack{0ms, 250ms};
  EXPECT_NE(
      repro_text(repro, Style(false)).find("slack: at most 250 ms; nothing shorter was tried"),
      std::string::npos);
}

TEST(ReproText, Tells_of_shorter_delays_what_the_chart_shows) {
  Repro repro;
  repro.slack = Slack{0ms, 482ms};
  repro.doses = {{0ms, {0, 5}}, {120ms, {0, 3}}, {482ms, {5, 5}}};
  const std::string text = repro_text(repro, Style(false));
  EXPECT_NE(text.find("slack: at most 482 ms; with 120 ms 0 of 3 runs failed, too few to be sure"),
            std::string::npos)
      << text;
}

TEST(ReproText, Does_not_accuse_a_test_of_its_margin) {
  Repro repro;
  repro.failure.file = "bread.cc";
  repro.slack = Slack{3700ms, 4050ms};
  repro.plausibility = Plausibility::margin;
  repro.machine_lateness = MachineLateness{1ms, 20ms};
  const std::string text = repro_text(repro, Style(false));
  EXPECT_NE(text.find("Margin"), std::string::npos) << text;
  EXPECT_NE(text.find("holds until 3.70 s late, fails when 4.05 s late"), std::string::npos)
      << text;
  EXPECT_NE(text.find("a margin, no flaw"), std::string::npos) << text;
  EXPECT_NE(text.find("20.0 ms when it was made scarce"), std::string::npos) << text;
  EXPECT_EQ(text.find("Reproduced"), std::string::npos) << text;
}

TEST(ReproText, Reproduces_a_failure_that_was_seen_however_late_it_takes) {
  Repro repro;
  repro.slack = Slack{3700ms, 4050ms};
  repro.plausibility = Plausibility::margin;
  repro.was_seen = true;
  const std::string text = repro_text(repro, Style(false));
  EXPECT_NE(text.find("Reproduced"), std::string::npos) << text;
  EXPECT_NE(text.find("slack: 4.05 s (3.70 s is not enough)"), std::string::npos) << text;
  EXPECT_NE(text.find("but the failure was seen"), std::string::npos) << text;
}

TEST(ReproText, Tells_a_flaw_from_a_risk) {
  Repro repro;
  repro.plan.interventions.emplace_back();
  repro.plausibility = Plausibility::flaw;
  EXPECT_NE(repro_text(repro, Style(false)).find("a flaw: a busy machine is that late"),
            std::string::npos);
  repro.plausibility = Plausibility::risk;
  EXPECT_NE(repro_text(repro, Style(false)).find("a risk: a badly overloaded machine is that late"),
            std::string::npos);
}

TEST(ReproText, Says_that_a_verdict_is_not_known_without_a_measurement) {
  Repro repro;
  repro.plan.interventions.emplace_back().duration = 400ms;
  EXPECT_NE(repro_text(repro, Style(false)).find("verdict: not known: a flaw, a risk or a margin"),
            std::string::npos);
  repro.passes_under_plan = true;
  EXPECT_EQ(repro_text(repro, Style(false)).find("verdict"), std::string::npos);
}

TEST(ReproText, Says_from_which_delay_on_a_broken_test_passes) {
  Repro repro;
  repro.passes_under_plan = true;
  repro.slack = Slack{3ms, 4ms};
  const std::string text = repro_text(repro, Style(false));
  EXPECT_NE(text.find("passes from 4.00 ms (3.00 ms is not enough)"), std::string::npos) << text;
}

TEST(ReproText, Says_what_free_cores_leave_to_chance_and_where_replay_runs_it) {
  Repro repro;
  repro.with_plan = {36, 45};
  EXPECT_EQ(repro_text(repro, Style(false)).find("under control"), std::string::npos);
  repro.under_control = Count{5, 5};
  const std::string text = repro_text(repro, Style(false));
  EXPECT_NE(text.find("`replay` runs it under control, where it failed in 5 of 5 runs"),
            std::string::npos)
      << text;
}

TEST(ReproText, Says_whether_every_run_of_a_schedule_is_the_same) {
  Repro repro;
  repro.plan.schedule.emplace();
  EXPECT_NE(repro_text(repro, Style(false)).find("every run takes the same decisions"),
            std::string::npos);
  repro.not_repeatable = "accept";
  EXPECT_NE(repro_text(repro, Style(false)).find("not everything is decided, because of accept"),
            std::string::npos);
}

TEST(ReproText, Leaves_out_holds_that_nobody_can_read) {
  Repro repro;
  repro.reason = "the oven comes before the baker";
  Intervention hold;
  hold.action = Intervention::Action::hold;
  hold.site.function = std::string(300, 'f');
  repro.plan.interventions = {hold, hold};
  const std::string text = repro_text(repro, Style(false));
  EXPECT_NE(text.find("the oven comes before the baker"), std::string::npos) << text;
  EXPECT_NE(text.find("by 2 holds at instructions with long names"), std::string::npos) << text;
  EXPECT_EQ(text.find("ffff"), std::string::npos) << text;
}

}  // namespace
}  // namespace unflake
