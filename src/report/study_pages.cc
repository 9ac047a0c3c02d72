#include "report/study_pages.h"

#include <fmt/format.h>

#include "report/layout.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

constexpr const char* study_style = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #59636e; --line: #d1d9e0;
  --card: #f6f8fa; --box: #0969da; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1;
  --line: #3d444d; --card: #161b22; --box: #58a6ff; } }
body { margin: 2rem auto; max-width: 84rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { font-weight: 600; } code { font: 13px/1.45 ui-monospace, monospace; }
ul { color: var(--faint); padding-left: 1.2rem; margin: .5rem 0; } li { overflow-wrap: anywhere; }
svg { box-sizing: border-box; max-width: 46rem; width: 100%; height: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: .4rem; margin-top: .6rem; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } .grid { stroke: var(--line); }
text.tick { fill: var(--faint); text-anchor: middle; font-size: 11px; }
.whisker, .median { stroke: var(--box); stroke-width: 1.5; } .median { stroke-width: 3; }
.box { fill: var(--box); opacity: .3; }
)css";

constexpr double box_left = 150, box_width = 560, row_height = 34;

class PageOfTables {
 public:
  std::string operator()(const std::vector<StudyTable>& tables,
                         const std::vector<std::string>& notes) {
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Flaky tests: a study</title>\n<style>{}</style>\n</head>\n<body>\n"
        "<h1>Flaky tests: a study</h1>\n",
        study_style);
    for (const StudyTable& table : tables) one(table);
    list(notes);
    return text_ + "</body>\n</html>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void one(const StudyTable& table) {
    put("<h2 id=\"table-{}\">{}</h2>\n", html_text(table.id), html_text(heading_of(table)));
    if (!table.rows.empty()) {
      put("<div class=\"wide\"><table>\n");
      row("th", table.header);
      for (const auto& cells : table.rows) row("td", cells);
      put("</table></div>\n");
    }
    if (!table.boxes.empty()) plot(table.boxes);
    list(table.remarks);
  }

  void row(const char* tag, const std::vector<std::string>& cells) {
    put("<tr>");
    for (const std::string& cell : cells) put("<{0}>{1}</{0}>", tag, html_cell(cell));
    put("</tr>\n");
  }

  void list(const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    put("<ul>\n");
    for (const std::string& line : lines) put("<li>{}</li>\n", html_prose(line, 1000));
    put("</ul>\n");
  }

  static double x_of(double rate) { return box_left + box_width * rate; }

  void plot(const std::vector<StudyTable::Box>& boxes) {
    const double height = row_height * static_cast<double>(boxes.size()) + 10;
    put("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"failure rates of flaky "
        "tests\">\n",
        box_left + box_width + 30, height + 24);
    for (const int part : {0, 25, 50, 75, 100})
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"4\" y2=\"{1:.0f}\"/><text "
          "class=\"tick\" x=\"{0:.1f}\" y=\"{2:.0f}\">{3} %</text>\n",
          x_of(part / 100.0), height, height + 16, part);
    for (size_t i = 0; i < boxes.size(); ++i)
      box(boxes[i], 10 + row_height * (static_cast<double>(i) + 0.5));
    put("</svg>\n");
  }

  void box(const StudyTable::Box& box, double y) {
    const Spread& rates = box.rates;
    put("<text x=\"8\" y=\"{:.1f}\">{}</text>\n", y + 4, html_text(box.label, 22));
    put("<line class=\"whisker\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        x_of(rates.min), x_of(rates.max), y, y);
    put("<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\"/>\n",
        x_of(rates.lower_quartile), y - 9,
        std::max(1.0, box_width * (rates.upper_quartile - rates.lower_quartile)));
    put("<line class=\"median\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
        x_of(rates.median), y - 9, y + 9);
  }

  std::string text_;
};

}  // namespace

std::string study_html(const std::vector<StudyTable>& tables,
                       const std::vector<std::string>& notes) {
  return PageOfTables()(tables, notes);
}

namespace {

using Json = nlohmann::ordered_json;

template <class Row>
Json list_of(const std::vector<Row>& rows, Json (*make)(const Row&)) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(make(row));
  return list;
}

Json share(int64_t part, int64_t whole) {
  const Interval interval = exact_interval(part, whole);
  return {{"count", part}, {"of", whole}, {"interval_95", {interval.low, interval.high}}};
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json json_of(const Spread& spread) {
  if (spread.count == 0) return nullptr;
  return {{"count", spread.count},
          {"min", spread.min},
          {"lower_quartile", spread.lower_quartile},
          {"median", spread.median},
          {"upper_quartile", spread.upper_quartile},
          {"max", spread.max},
          {"mean", spread.mean}};
}

Json json_of(const PrevalenceRow& row) {
  return {{"project", printable(row.project)},
          {"tests", row.tests},
          {"builds", row.builds},
          {"failed_builds", row.failed_builds},
          {"runs", row.runs},
          {"median_build_us", row.median_build.count()},
          {"flaky_tests", row.flaky_tests},
          {"flaky_failures", row.flaky_failures},
          {"suppressed", row.suppressed},
          {"flaky_builds_of_failed", share(row.flaky_builds, row.failed_builds)},
          {"flaky_builds_of_all", share(row.flaky_builds, row.builds)}};
}

Json json_of(const FlakyTestRow& row) {
  return {{"project", printable(row.project)},
          {"flaky", row.flaky},
          {"closed", share(row.closed, row.flaky)},
          {"with_commit", row.with_commit},
          {"with_link", row.with_link},
          {"never_flaky", row.never_flaky}};
}

Json json_of(const RateRow& row) {
  return {{"project", printable(row.project)},
          {"tests", row.tests},
          {"runs", row.runs},
          {"passed_and_failed", share(row.both, row.tests)},
          {"reproduced_on_demand", row.on_demand},
          {"failure_rates", json_of(row.rates)}};
}

Json json_of(const RunTimes& times) {
  return {{"runs", times.runs},
          {"mean_us", times.mean.count()},
          {"median_of_medians_us", times.median.count()}};
}

const char* name_of(RunTimeRow::Tendency tendency) {
  switch (tendency) {
    case RunTimeRow::Tendency::longer:
      return "longer";
    case RunTimeRow::Tendency::shorter:
      return "shorter";
    case RunTimeRow::Tendency::unclear:
      break;
  }
  return "unclear";
}

Json json_of(const RunTimeRow& row) {
  return {{"project", printable(row.project)},
          {"passing", json_of(row.passing)},
          {"failing", json_of(row.failing)},
          {"tests_longer", row.longer},
          {"tests_shorter", row.shorter},
          {"tests_same", row.same},
          {"median_ratio", row.ratio},
          {"sign_test_p", row.p},
          {"failing_runs_are", name_of(row.tendency)}};
}

Json json_of(const CategoryCounts& counts) {
  Json causes = Json::array(), places = Json::object();
  for (const CategoryRow& row : counts.causes)
    causes.push_back({{"cause", printable(row.name)}, {"tests", share(row.tests, counts.tests)}});
  const int64_t read = counts.fixes.fixes - counts.fixes.unreadable;
  for (const FixPlace place : all_fix_places)
    places[std::string(to_string(place))] =
        share(counts.fixes.places[static_cast<size_t>(place)], read);
  return {{"flaky_tests", counts.tests},          {"explained", counts.explained},
          {"causes", std::move(causes)},          {"fixes", counts.fixes.fixes},
          {"commits_read", counts.fixes.commits}, {"fixes_not_read", counts.fixes.unreadable},
          {"places", std::move(places)}};
}

Json json_of(const RepairTimeRow& row) {
  return {{"project", printable(row.project)},
          {"closed", row.survival.ended},
          {"open", row.survival.open},
          {"closed_days", json_of(row.closed)},
          {"median_days", number_or_null(row.survival.median)},
          {"median_days_interval_95",
           {number_or_null(row.survival.median_low), number_or_null(row.survival.median_high)}}};
}

Json kinds_of(const FixCounts& fixes) {
  Json async = Json::object(), all = Json::object();
  for (const FixKind kind : all_fix_kinds) {
    const auto i = static_cast<size_t>(kind);
    const std::string name(to_string(kind));
    async[name] = share(fixes.async_kinds[i], fixes.async_fixes);
    all[name] = share(fixes.kinds[i], fixes.fixes - fixes.unreadable);
  }
  return {{"async_wait", std::move(async)}, {"all", std::move(all)}};
}

Json json_of(const Reoccurrence& one) {
  return {{"project", printable(one.project)},        {"test", printable(to_string(one.test))},
          {"signature", printable(one.signature)},    {"closed", timestamp_in_seconds(one.closed)},
          {"again", timestamp_in_seconds(one.again)}, {"commit", printable(one.commit)}};
}

Json json_of(const ReoccurrenceCounts& counts) {
  return {{"tests", share(counts.tests_again, counts.tests)},
          {"tests_only_failing", counts.tests_only_failing},
          {"days", json_of(counts.days)},
          {"failures", list_of(counts.all, json_of)}};
}

Json json_of(const Tries& tries) {
  const Interval interval = exact_interval(tries.failures, tries.runs);
  return {{"failures", tries.failures},
          {"runs", tries.runs},
          {"interval_95", {interval.low, interval.high}}};
}

Json json_of(const ClaimedFix& fix) {
  return {{"project", printable(fix.project)},
          {"test", printable(to_string(fix.test))},
          {"signature", printable(fix.signature)},
          {"closed", timestamp_in_seconds(fix.at)},
          {"commit", printable(fix.commit)},
          {"before", json_of(fix.before)},
          {"after", json_of(fix.after)},
          {"p", fix.p},
          {"p_corrected", fix.p_corrected},
          {"rate_after", to_string(fix.verdict)},
          {"more_runs", fix.more_runs ? Json(*fix.more_runs) : Json(nullptr)},
          {"prove", proof_command(fix)}};
}

}  // namespace

std::string study_json(const Study& study) {
  Json notes = Json::array();
  for (const std::string& note : study.notes) notes.push_back(printable(note));
  const Json whole = {
      {"format", 1},
      {"from", timestamp_in_seconds(study.from)},
      {"until", timestamp_in_seconds(study.until)},
      {"complete_since",
       study.complete_since ? Json(timestamp_in_seconds(*study.complete_since)) : Json(nullptr)},
      {"prevalence", list_of(study.prevalence, json_of)},
      {"flaky_tests", list_of(study.flaky_tests, json_of)},
      {"rates", list_of(study.rates, json_of)},
      {"run_times", list_of(study.run_times, json_of)},
      {"categories", json_of(study.categories)},
      {"repair_times", list_of(study.repair_times, json_of)},
      {"fix_kinds", kinds_of(study.categories.fixes)},
      {"reoccurrences", json_of(study.reoccurrences)},
      {"claimed_fixes", list_of(study.claimed_fixes, json_of)},
      {"notes", std::move(notes)}};
  return json_text(whole, 2) + "\n";
}

}  // namespace unflake
