#include "model/cause_report.h"
#include "report/timestamp.h"
#include "stats/intervals.h"
#include "util/json.h"
#include "util/text.h"

namespace unflake {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format_number = 1;

Json rate_json(int64_t failures, int64_t runs, bool cut) {
  const Interval interval = exact_interval(failures, runs);
  return {{"failures", failures},
          {"runs", runs},
          {"newest_runs_only", cut},
          {"rate",
           runs == 0 ? Json() : Json(static_cast<double>(failures) / static_cast<double>(runs))},
          {"interval_95", {interval.low, interval.high}}};
}

Json json_of(const ReportedTest& test) {
  return {{"test", printable(to_string(test.test))},
          {"signature", printable(test.signature)},
          {"failure", printable(test.headline)},
          {"rate", rate_json(test.failures, test.runs, test.runs_cut)},
          {"builds", test.builds},
          {"suppressed_builds", test.suppressed_builds},
          {"wasted_us", test.wasted.count()},
          {"first", timestamp_in_seconds(test.first)},
          {"first_commit", printable(test.first_commit)},
          {"last", timestamp_in_seconds(test.last)},
          {"last_commit", printable(test.last_commit)},
          {"owner", printable(test.owner)},
          {"quarantined_until",
           test.quarantined_until ? Json(format_day(*test.quarantined_until)) : Json()}};
}

Json json_of(const ReportedRepro& repro) {
  return {{"replay", repro.replay}, {"explain", repro.explain},   {"how_often", repro.how_often},
          {"slack", repro.slack},   {"category", repro.category}, {"advice", repro.advice},
          {"story", repro.story}};
}

Json json_of(const ReportedCause& cause) {
  Json tests = Json::array();
  for (const ReportedTest& test : cause.tests) tests.push_back(json_of(test));
  bool cut = false;
  for (const ReportedTest& test : cause.tests) cut = cut || test.runs_cut;
  return {{"id", cause.id == 0 ? Json() : Json(cause.id)},
          {"title", printable(cause.title)},
          {"state", cause.is_open ? "open" : "closed"},
          {"reopened", cause.reopened},
          {"issue", cause.issue.empty() ? Json() : Json(printable(cause.issue))},
          {"rate", rate_json(cause.failures, cause.runs, cut)},
          {"builds", {{"at_least", cause.fewest_builds}, {"at_most", cause.most_builds}}},
          {"suppressed_builds", cause.suppressed_builds},
          {"wasted_us", cause.wasted.count()},
          {"first", timestamp_in_seconds(cause.first)},
          {"first_commit", printable(cause.first_commit)},
          {"last", timestamp_in_seconds(cause.last)},
          {"hits_per_day", cause.hits_per_day},
          {"tests", std::move(tests)},
          {"tests_left_out", cause.tests_left_out},
          {"repro", cause.repro ? json_of(*cause.repro) : Json()},
          {"next", printable(cause.next)}};
}

}  // namespace

std::string cause_report_json(const CauseReport& report) {
  Json causes = Json::array();
  for (const ReportedCause& cause : report.causes) causes.push_back(json_of(cause));
  const Json whole = {{"format", format_number},
                      {"project", printable(report.project)},
                      {"written", timestamp_in_seconds(report.written)},
                      {"first_day", format_day(report.first_day)},
                      {"last_day", format_day(report.last_day)},
                      {"runs", report.runs},
                      {"builds", report.builds},
                      {"flaky_builds", report.flaky_builds},
                      {"causes", std::move(causes)},
                      {"causes_left_out", report.causes_left_out}};
  return json_text(whole, 2) + "\n";
}

}  // namespace unflake
