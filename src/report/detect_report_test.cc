#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "report/detect_text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

DetectedTest detected(const std::string& name, DetectedTest::Answer answer, int passes,
                      int failures) {
  DetectedTest test;
  test.id = {"server_test", name};
  test.answer = answer;
  test.plain.passes = passes;
  test.plain.failures = failures;
  test.mean = 10ms;
  return test;
}

DetectedTest late(const std::string& name, Duration slack) {
  DetectedTest test = detected(name, DetectedTest::Answer::fails_perturbed, 20, 0);
  test.perturbed.emplace();
  test.perturbed->slack = Slack{Duration::zero(), slack};
  test.perturbed->with_plan = {5, 5};
  test.perturbed->without_plan = {0, 5};
  test.repro_file = ".unflake/repro/x.json";
  return test;
}

DetectReport some_report() {
  DetectReport report;
  report.target = "server_test";
  report.budget = 10min;
  report.elapsed = 9min;
  report.plain_runs = 340;
  report.tests = {late("Net.Slow", 80ms),
                  late("Net.Quick", 3ms),
                  detected("Calm.One", DetectedTest::Answer::no_sign, 300, 0),
                  detected("Loud.One", DetectedTest::Answer::seen_flaky, 17, 3),
                  detected("Bad.One", DetectedTest::Answer::always_fails, 0, 20),
                  detected("Gone.One", DetectedTest::Answer::not_run, 0, 0)};
  report.tests[3].failure = "server_test.cc:42: a == b";
  report.tests[5].why = "no time was left for a run";
  sort_by_answer(report.tests);
  return report;
}

TEST(DetectReport, is_sorted_by_answer_and_slack) {
  const DetectReport report = some_report();
  EXPECT_EQ(report.tests[0].id.name, "Loud.One");
  EXPECT_EQ(report.tests[1].id.name, "Net.Quick");
  EXPECT_EQ(report.tests[2].id.name, "Net.Slow");
}

TEST(DetectReport, a_plan_under_which_a_test_passes_is_not_told_as_one_under_which_it_fails) {
  DetectedTest test = late("Net.Often", 3ms);
  test.perturbed->passes_under_plan = true;
  test.perturbed->with_plan = {0, 10};
  test.perturbed->without_plan = {13, 20};
  EXPECT_EQ(cause_words(test), "fails when no thread is 3.00 ms late (13 of 20 runs)");
}

TEST(DetectReport, keeps_kinds_of_answers_in_tables_of_their_own) {
  const std::string text = detect_text(some_report(), Style(false));
  const size_t flaky = text.find("Seen flaky in plain runs"),
               perturbed = text.find("Fail when late"), none = text.find("No sign");
  ASSERT_LT(flaky, perturbed);
  ASSERT_LT(perturbed, none);
  EXPECT_GT(text.find("Net.Quick"), perturbed);
  EXPECT_LT(text.find("Net.Slow"), none);
  EXPECT_THAT(text, HasSubstr("3 of 20 failed (3.2..37.9 %)"));
  EXPECT_THAT(text, HasSubstr("3.00 ms late (5 of 5 runs)"));
  EXPECT_THAT(text, HasSubstr("1.00 %"));
  EXPECT_THAT(text, HasSubstr("no time was left for a run"));
}

TEST(DetectReport, says_nothing_of_kinds_that_nobody_has) {
  DetectReport report;
  const std::string text = detect_text(report, Style(false));
  EXPECT_THAT(text, Not(HasSubstr("Seen flaky")));
  EXPECT_THAT(text, HasSubstr("0 tests: 0 seen flaky"));
}

TEST(DetectReport, has_all_of_it_in_JSON) {
  const auto json = nlohmann::json::parse(detect_json(some_report()));
  EXPECT_EQ(json["format"], "unflake-detect");
  EXPECT_EQ(json["counts"]["seen_flaky"], 1);
  EXPECT_EQ(json["tests"][1]["perturbed"]["slack_ms"], 3.0);
  EXPECT_FALSE(json["tests"][1].contains("rate_below"));
  EXPECT_EQ(json["tests"].size(), 6u);
}

TEST(DetectReport, is_well_formed_JUnit_and_HTML_whatever_tests_are_called) {
  DetectReport report = some_report();
  report.tests[0].id.name = "<b>&\"'\x01\xff";
  report.tests[0].failure = "</table>]]>\x1b[31m";
  pugi::xml_document junit;
  ASSERT_TRUE(junit.load_string(detect_junit(report).c_str()));
  EXPECT_EQ(std::string(junit.child("testsuites").child("testsuite").attribute("failures").value()),
            "4");
  const std::string html = detect_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_NO_THROW(nlohmann::json::parse(detect_json(report)));
}

TEST(DetectReport, a_margin_is_told_with_what_has_shown_no_sign) {
  DetectedTest test = late("Net.Margin", 5s);
  test.answer = DetectedTest::Answer::no_sign;
  test.perturbed->plausibility = Plausibility::margin;
  EXPECT_THAT(searched_words(test), HasSubstr("a margin"));
}

TEST(DetectReport, says_of_how_many_tests_it_knows_less_for_want_of_time) {
  DetectReport report = some_report();
  EXPECT_THAT(detect_text(report, Style(false)), Not(HasSubstr("look for lateness")));
  report.tests.back().lacked_time = true;
  EXPECT_THAT(detect_text(report, Style(false)), HasSubstr("look for lateness in 1 test:"));
}

TEST(DetectProgress, counts_what_was_done_and_how_much_of_the_time_is_over) {
  class : public Sink {
   public:
    void write(std::string_view text) override { all += text; }
    std::string all;
  } sink;
  DetectProgress progress(sink, false, true, [] { return std::string("3m 12s of 10m"); });
  progress.on(RunEnded{});
  EXPECT_THAT(sink.all, HasSubstr("[3m 12s of 10m] 0 found so far; 1 plain run, 0 trials"));
}

RerunCurve some_curve() {
  RerunCurve curve;
  curve.source = "by rates.csv";
  curve.tests = 2;
  curve.flaky = 1;
  curve.points = {{1, 1, 0, 0.5, 0, 1}, {300, 150, 0.95, 1, 1, 1}};
  return curve;
}

TEST(RerunCurve, is_drawn_within_its_frame) {
  pugi::xml_document drawing;
  const std::string svg = curve_svg(some_curve());
  ASSERT_TRUE(drawing.load_string(svg.c_str()));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, HasSubstr("curve scheduled"));
  EXPECT_THAT(curve_html(some_curve()), HasSubstr("5 min"));
}

TEST(RerunCurve, of_nothing_is_drawn_too) {
  pugi::xml_document drawing;
  const std::string svg = curve_svg(RerunCurve());
  EXPECT_TRUE(drawing.load_string(svg.c_str()));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(RerunCurve, has_its_numbers_in_text_and_JSON) {
  EXPECT_THAT(curve_text(some_curve()), HasSubstr("1 of 2 tests are known to be flaky"));
  const auto json = nlohmann::json::parse(curve_json(some_curve()));
  EXPECT_EQ(json["points"][1]["everything"], 0.95);
}

}  // namespace
}  // namespace unflake
