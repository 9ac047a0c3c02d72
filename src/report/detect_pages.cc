#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "report/consumers.h"
#include "report/detect_text.h"
#include "report/explanation_pages.h"
#include "report/search_text.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

using DetectAnswer = DetectedTest::Answer;

constexpr const char* detect_style = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #59636e; --line: #d1d9e0; --bad: #c62828; --good: #1a7f37; --blue: #0969da; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --bad: #ff7b72; --good: #3fb950; --blue: #58a6ff; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; } p, li { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0; border-top: 1px solid var(--line); } th { color: var(--faint); } td { overflow-wrap: break-word; }
svg { width: 100%; max-width: 52rem; height: auto; } svg text { fill: var(--faint); font: 11px system-ui, sans-serif; }
.grid { stroke: var(--line); } .curve { fill: none; stroke-width: 2; } .everything { stroke: var(--faint); stroke-dasharray: 5 3; } .scheduled { stroke: var(--blue); }
.spread { fill: var(--blue); opacity: .15; } text.tick { text-anchor: middle; } text.side { text-anchor: end; }
)css";

std::string detect_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}</body>\n</html>\n",
      html_text(title), detect_style, html_text(title), body);
}

using DetectCells = std::vector<std::string>;

std::string detect_table(const DetectCells& head, const std::vector<DetectCells>& rows) {
  std::string text = "<div class=\"wide\"><table>\n<tr>";
  for (const std::string& cell : head) text += "<th>" + html_text(cell) + "</th>";
  text += "</tr>\n";
  for (const DetectCells& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += "<td>" + html_cell(cell) + "</td>";
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

DetectCells cells_of_test(const DetectedTest& test) {
  switch (test.answer) {
    case DetectAnswer::seen_flaky:
      return {to_string(test.id), plain_words(test), slack_cell(test),
              test.failure + "; cause: " + cause_words(test)};
    case DetectAnswer::fails_perturbed:
      return {to_string(test.id), plain_words(test), slack_cell(test), perturbed_words(test)};
    case DetectAnswer::no_sign:
      return {to_string(test.id), plain_words(test),
              percent_at_most(upper_bound_zero_failures(test.plain.passes)), searched_words(test)};
    default:
      return {to_string(test.id), plain_words(test), "",
              test.why.empty() ? test.failure : test.why};
  }
}

struct DetectChapter {
  DetectAnswer answer;
  const char* title;
  const char* third;
  const char* fourth;
};

constexpr DetectChapter detect_chapters[] = {
    {DetectAnswer::seen_flaky, "Seen flaky in plain runs", "Slack", "Failure"},
    {DetectAnswer::fails_perturbed, "Fail when late or in another order; plain runs end alike",
     "Slack", "Fails when"},
    {DetectAnswer::always_fails, "Failed in every run", "", "Failure"},
    {DetectAnswer::no_sign, "No sign of flakiness", "Rate below, at 95 %", "Looked for lateness"},
    {DetectAnswer::skipped, "Skipped", "", "Why"},
    {DetectAnswer::not_run, "Not run", "", "Why"},
};

std::string chapter_html(const DetectReport& report, const DetectChapter& chapter) {
  std::vector<DetectCells> rows;
  for (const DetectedTest& test : report.tests)
    if (test.answer == chapter.answer) rows.push_back(cells_of_test(test));
  if (rows.empty()) return "";
  return fmt::format("<h2>{}</h2>\n", chapter.title) +
         detect_table({"Test", "Plain runs", chapter.third, chapter.fourth}, rows);
}

void add_answer(pugi::xml_node node, const DetectedTest& test) {
  const auto add = [&](const char* kind, const std::string& type, const std::string& message) {
    pugi::xml_node child = node.append_child(kind);
    if (!type.empty()) child.append_attribute("type") = type.c_str();
    child.append_attribute("message") = xml_text(printable(message)).c_str();
  };
  switch (test.answer) {
    case DetectAnswer::seen_flaky:
      return add("failure", "seen_flaky", plain_words(test) + ": " + test.failure);
    case DetectAnswer::fails_perturbed:
      return add("failure", "fails_perturbed", "fails when " + perturbed_words(test));
    case DetectAnswer::always_fails:
      return add("failure", "always_fails", plain_words(test) + ": " + test.failure);
    case DetectAnswer::skipped:
    case DetectAnswer::not_run:
      return add("skipped", "", test.why);
    case DetectAnswer::no_sign:
      return;
  }
}

// The drawing of a curve.
class CurvePlot {
 public:
  explicit CurvePlot(const RerunCurve& curve) : curve_(curve) {
    for (const RerunCurve::Point& point : curve.points) {
      most_seconds_ = std::max(most_seconds_, point.seconds);
      most_found_ = std::max({most_found_, point.everything, point.most});
    }
  }

  std::string operator()() {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-label=\"expected detections by time\">\n",
        right + 20, bottom + 40);
    draw_axes();
    draw_spread();
    draw("everything", &RerunCurve::Point::everything, "rerun everything");
    draw("scheduled", &RerunCurve::Point::scheduled, "scheduled");
    return text_ + "</svg>\n";
  }

 private:
  static constexpr double left = 50, right = 760, top = 20, bottom = 300;

  double x_of(double seconds) const { return left + (right - left) * seconds / most_seconds_; }
  double y_of(double found) const { return bottom - (bottom - top) * found / most_found_; }

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void draw_axes() {
    const double step = axis_step(most_seconds_), count = axis_step(most_found_);
    for (double at = 0; at <= most_seconds_ * 1.0001; at += step)
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\" "
          "stroke=\"#8888\"/><text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.0f}\">{4}</text>\n",
          x_of(at), top, bottom, bottom + 16, html_text(time_words(at)));
    for (double at = 0; at <= most_found_ * 1.0001; at += count)
      put("<line class=\"grid\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" "
          "stroke=\"#8888\"/><text class=\"side\" x=\"{3:.0f}\" y=\"{2:.1f}\">{4:g}</text>\n",
          left, right, y_of(at), left - 6, at);
  }

  void draw_spread() {
    put("<polygon class=\"spread\" fill=\"#0969da\" opacity=\".15\" points=\"");
    for (const auto& point : curve_.points)
      put("{:.1f},{:.1f} ", x_of(point.seconds), y_of(point.most));
    for (size_t i = curve_.points.size(); i-- > 0;)
      put("{:.1f},{:.1f} ", x_of(curve_.points[i].seconds), y_of(curve_.points[i].least));
    put("\"/>\n");
  }

  void draw(const char* kind, double RerunCurve::Point::*value, const char* name) {
    put("<polyline class=\"curve {}\" fill=\"none\" stroke=\"{}\" points=\"{:.1f},{:.1f} ", kind,
        kind[0] == 's' ? "#0969da" : "#59636e", x_of(0), y_of(0));
    for (const auto& point : curve_.points)
      put("{:.1f},{:.1f} ", x_of(point.seconds), y_of(point.*value));
    put("\"/>\n");
    if (curve_.points.empty()) return;
    const auto& last = curve_.points.back();
    put("<text class=\"side\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", right,
        y_of(last.*value) + (kind[0] == 's' ? -6 : 14), name);
  }

  const RerunCurve& curve_;
  double most_seconds_ = 1e-3, most_found_ = 1e-3;
  std::string text_;
};

}  // namespace

std::string detect_junit(const DetectReport& report) {
  pugi::xml_document document;
  pugi::xml_node suite = document.append_child("testsuites").append_child("testsuite");
  const size_t found = report.count(DetectAnswer::seen_flaky) +
                       report.count(DetectAnswer::fails_perturbed) +
                       report.count(DetectAnswer::always_fails);
  suite.append_attribute("name") = xml_text(printable(report.target)).c_str();
  suite.append_attribute("tests") = static_cast<unsigned long long>(report.tests.size());
  suite.append_attribute("failures") = static_cast<unsigned long long>(found);
  suite.append_attribute("skipped") = static_cast<unsigned long long>(
      report.count(DetectAnswer::skipped) + report.count(DetectAnswer::not_run));
  for (const DetectedTest& test : report.tests) {
    pugi::xml_node node = suite.append_child("testcase");
    node.append_attribute("classname") = xml_text(printable(test.id.target)).c_str();
    node.append_attribute("name") = xml_text(printable(test.id.name)).c_str();
    node.append_attribute("time") =
        fmt::format("{:.6f}", std::chrono::duration<double>(test.mean).count()).c_str();
    add_answer(node, test);
  }
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

std::string detect_html(const DetectReport& report) {
  std::string body = html_list(summary_of(report));
  for (const DetectChapter& chapter : detect_chapters) body += chapter_html(report, chapter);
  return detect_page("Flaky tests of " + report.target, body);
}

std::string curve_svg(const RerunCurve& curve) {
  return CurvePlot(curve)();
}

std::string curve_html(const RerunCurve& curve) {
  std::vector<DetectCells> rows;
  for (const RerunCurve::Point& point : curve.points)
    rows.push_back({time_words(point.seconds), std::to_string(point.runs),
                    fmt::format("{:.1f}", point.everything), fmt::format("{:.1f}", point.scheduled),
                    fmt::format("{:.0f}..{:.0f}", point.least, point.most)});
  return detect_page("What reruns are expected to find",
                     fmt::format("<p>{} of {} tests are known to be flaky ({}).</p>\n", curve.flaky,
                                 curve.tests, html_text(curve.source)) +
                         curve_svg(curve) +
                         detect_table({"Time", "Runs of each", "Detections, rerunning everything",
                                       "Scheduled", "Least..most"},
                                      rows) +
                         html_list(curve.notes));
}

}  // namespace unflake
