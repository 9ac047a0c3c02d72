#include "report/cause_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "report/layout.h"
#include "util/json.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr const char* hostile =
    "</td><script>alert(1)</script> | @everybody #1 `x` \x1b[2J \xff &amp; ```";

TimePoint noon(int day) {
  return std::chrono::sys_days(std::chrono::year(2026) / 3 / day) + 12h;
}

ReportedTest push_test() {
  ReportedTest test;
  test.test = {"server_test", "Server.Push"};
  test.signature = "00000000000000aa";
  test.headline = "server_test.cc:42: queue.size() == 1";
  test.failures = 12;
  test.runs = 400;
  test.builds = 5;
  test.suppressed_builds = 2;
  test.wasted = 200s;
  test.first = noon(1);
  test.last = noon(9);
  test.first_commit = "0123456789abcdef";
  test.owner = "@acme/pilots";
  test.quarantined_until = *parse_day("2026-03-20");
  return test;
}

ReportedCause push_cause() {
  ReportedCause cause;
  cause.id = 7;
  cause.tests = {push_test()};
  cause.title = cause.tests[0].headline;
  cause.failures = 12;
  cause.runs = 400;
  cause.fewest_builds = cause.most_builds = 5;
  cause.suppressed_builds = 2;
  cause.wasted = 200s;
  cause.first = noon(1);
  cause.last = noon(9);
  cause.first_commit = "0123456789abcdef";
  cause.hits_per_day = {1, 0, 4};
  cause.next = "unflake reproduce server_test:Server.Push --failure 00000000000000aa";
  return cause;
}

CauseReport report_of(std::vector<ReportedCause> causes) {
  CauseReport report;
  report.project = "acme/rocket";
  report.first_day = *parse_day("2026-03-08");
  report.last_day = report.today = *parse_day("2026-03-10");
  report.written = noon(10);
  report.runs = 12'000;
  report.builds = 120;
  report.flaky_builds = 5;
  report.causes = std::move(causes);
  return report;
}

ReportedCause hostile_cause() {
  ReportedCause cause = push_cause();
  cause.title = hostile;
  cause.tests[0].test = {hostile, hostile};
  cause.tests[0].headline = cause.tests[0].owner = hostile;
  cause.first_commit = hostile;
  cause.issue = cause.next = hostile;
  ReportedRepro repro;
  repro.replay = repro.explain = repro.how_often = repro.slack = hostile;
  repro.story = {hostile};
  cause.repro = repro;
  return cause;
}

TEST(HtmlText, Code_in_a_sentence_is_shown_as_such) {
  EXPECT_EQ(html_prose("run `unflake <x>` & `y`"),
            "run <code>unflake &lt;x&gt;</code> &amp; <code>y</code>");
  EXPECT_EQ(html_prose("a ` alone, `` and `</code>`"),
            "a ` alone, `` and <code>&lt;/code&gt;</code>");
  EXPECT_EQ(html_prose("none"), "none");
}

TEST(HtmlText, A_cell_breaks_between_words_and_keeps_units) {
  EXPECT_EQ(html_cell("net/server_test:A.b"), "net/<wbr/>server_<wbr/>test:<wbr/>A.<wbr/>b");
  EXPECT_EQ(html_cell("4/16 runs (25.0 %, 0.5..1.5 ms) <b>"),
            "4/16 runs (25.0&#160;%, 0.5..1.5&#160;ms) &lt;b&gt;");
  EXPECT_EQ(html_cell("3 scripts"), "3 scripts");
}

TEST(CauseReport, Columns_of_the_page_do_not_cut_words) {
  const std::string page = cause_report_html(report_of({push_cause()}));
  EXPECT_THAT(page, HasSubstr("<td class=\"name\"><code>server_<wbr/>test:<wbr/>Server.<wbr/>Push"
                              "</code></td>"));
  EXPECT_THAT(page,
              HasSubstr("th { color: var(--faint); font-weight: 600; white-space: nowrap; }"));
  const size_t cells = page.find("th, td {");
  EXPECT_EQ(page.substr(cells, page.find('}', cells) - cells).find("anywhere"), std::string::npos);
}

TEST(CauseReport, Every_figure_has_its_evidence) {
  const std::string text = cause_report_markdown(report_of({push_cause()}));
  for (const char* part :
       {"12000 runs in 120 builds from 2026-03-08 to 2026-03-10",
        "12/400 runs failed (3.0 %, 95 % interval 1.6..5.2 %)",
        "commit 0123456789, 2026-03-01 12:00",
        "5 builds, 2 failures kept from failing by quarantine", "3m 20s in failing runs",
        "1 of 1 failure, until 2026-03-20", "`@acme/pilots`", "cause 7",
        "unflake reproduce server_test:Server.Push"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(CauseReport, Builds_that_two_tests_may_share_are_told_as_a_range) {
  ReportedCause cause = push_cause();
  cause.fewest_builds = 3;
  EXPECT_THAT(cause_markdown(cause, {}), HasSubstr("3 to 5 builds"));
}

TEST(CauseReport, A_quarantine_that_has_ended_is_told) {
  EXPECT_THAT(cause_markdown(push_cause(), *parse_day("2026-04-01")),
              HasSubstr("expired on 2026-03-20"));
}

TEST(CauseReport, Without_flaky_failures_it_says_over_how_many_runs) {
  for (const std::string& text :
       {cause_report_markdown(report_of({})), cause_report_html(report_of({}))}) {
    EXPECT_THAT(text, HasSubstr("12000 runs in 120 builds"));
    EXPECT_THAT(text, HasSubstr("No test failed and passed on the same code."));
  }
}

TEST(CauseReport, A_repro_takes_the_place_of_the_next_step) {
  ReportedCause cause = push_cause();
  ReportedRepro repro;
  repro.replay = "unflake replay push";
  repro.how_often = "fails in 5 of 5 runs";
  repro.slack = "96.0 ms";
  repro.category = "async wait";
  repro.advice = "Wait for it.";
  cause.repro = repro;
  const std::string text = cause_markdown(cause, {});
  EXPECT_THAT(text, HasSubstr("slack `96.0 ms`"));
  EXPECT_THAT(text, HasSubstr("**Root cause:** async wait. Wait for it."));
  EXPECT_THAT(text, HasSubstr("unflake replay push"));
  EXPECT_THAT(text, Not(HasSubstr("Not reproduced")));
}

// Outside of code spans and blocks, where Markdown would obey it.
std::string outside_code(const std::string& markdown) {
  std::string outside;
  for (size_t at = 0; at < markdown.size();) {
    const size_t ticks = std::min(markdown.find_first_not_of('`', at), markdown.size()) - at;
    if (ticks == 0) {
      outside += markdown[at++];
      continue;
    }
    const std::string fence(ticks, '`');
    size_t end = markdown.find(fence, at + ticks);
    while (end != std::string::npos &&
           (markdown[end - 1] == '`' || markdown.substr(end + ticks, 1) == "`"))
      end = markdown.find(fence, markdown.find_first_not_of('`', end));
    if (end == std::string::npos) return outside + "UNCLOSED";
    at = end + ticks;
  }
  return outside;
}

TEST(CauseReport, Hostile_texts_are_no_Markdown) {
  const std::string outside = outside_code(cause_report_markdown(report_of({hostile_cause()})));
  for (const char* part : {"script", "everybody", "#1", "UNCLOSED"})
    EXPECT_THAT(outside, Not(HasSubstr(part)));
}

TEST(CauseReport, Hostile_texts_do_not_break_a_table) {
  const std::string cell = markdown_code("a|b\nc");
  EXPECT_EQ(cell, "`a\\|b\\nc`");
  EXPECT_EQ(markdown_code("``"), "``` `` ```");
  EXPECT_EQ(markdown_code(""), "-");
}

TEST(CauseReport, The_page_is_well_formed_whatever_is_in_it) {
  const std::string html = cause_report_html(report_of({push_cause(), hostile_cause()}));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  std::string xml = html.substr(html.find("<html"));
  for (const char* empty : {"<meta charset=\"utf-8\">", "initial-scale=1\">"}) {
    const size_t at = xml.find(empty) + std::string_view(empty).size();
    xml.insert(at - 1, "/");
  }
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(xml.c_str())) << xml;
}

TEST(CauseReport, The_page_shows_the_trend) {
  EXPECT_THAT(cause_report_html(report_of({push_cause()})),
              HasSubstr("<title>2026-03-10: 4</title>"));
}

TEST(CauseReport, The_page_says_when_no_build_has_shown_the_cause) {
  ReportedCause local = push_cause();
  local.fewest_builds = local.most_builds = 0;
  std::ranges::fill(local.hits_per_day, 0);
  const std::string html = cause_report_html(report_of({local}));
  EXPECT_THAT(html, HasSubstr("no build failed so in these days: it was seen in local runs only"));
  EXPECT_THAT(html, Not(HasSubstr("highest")));
}

TEST(CauseReport, A_trend_without_days_is_empty) {
  EXPECT_EQ(trend_svg({}, {}), "");
}

TEST(CauseReport, Machines_read_the_same_figures) {
  const auto json = parse_json_or_throw(cause_report_json(report_of({push_cause()})));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["runs"], 12'000);
  const auto& cause = json["causes"][0];
  EXPECT_EQ(cause["id"], 7);
  EXPECT_EQ(cause["rate"]["failures"], 12);
  EXPECT_EQ(cause["rate"]["runs"], 400);
  EXPECT_NEAR(cause["rate"]["rate"], 0.03, 1e-9);
  EXPECT_EQ(cause["builds"]["at_most"], 5);
  EXPECT_EQ(cause["tests"][0]["quarantined_until"], "2026-03-20");
  EXPECT_EQ(cause["hits_per_day"], (std::vector{1, 0, 4}));
}

TEST(CauseReport, Hostile_texts_are_valid_JSON) {
  EXPECT_NO_THROW(parse_json_or_throw(cause_report_json(report_of({hostile_cause()}))));
}

}  // namespace
}  // namespace unflake
