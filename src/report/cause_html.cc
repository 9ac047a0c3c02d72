#include <fmt/format.h>

#include <algorithm>

#include "model/cause_report.h"
#include "report/html_text.h"
#include "report/style.h"
#include "report/timestamp.h"
#include "report/trend_svg.h"
#include "stats/rates.h"

namespace unflake {
namespace {

constexpr const char* style_sheet = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #59636e; --line: #d1d9e0;
  --card: #f6f8fa; --bad: #c62828; --mark: #b4236a; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1;
  --line: #3d444d; --card: #161b22; --bad: #ff7b72; --mark: #ff7bb5; } }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.05rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-left: .35rem solid var(--mark); background: var(--card);
  border-radius: .4rem; padding: .8rem 1rem; margin: 1rem 0; }
section.closed { border-left-color: var(--line); } .faint { color: var(--faint); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-top: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; white-space: nowrap; } td.name { min-width: 13rem; overflow-wrap: anywhere; }
td.short { white-space: nowrap; } p, li { overflow-wrap: anywhere; } code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .8rem; overflow-x: auto; }
svg.trend { width: 100%; max-width: 40rem; height: auto; } svg rect { fill: var(--bad); }
svg text { fill: var(--faint); font: 11px system-ui, sans-serif; } svg text.end { text-anchor: end; }
)css";

class HtmlWriter {
 public:
  explicit HtmlWriter(const CauseReport& report) : report_(report) {}

  std::string operator()() {
    const std::string title =
        report_.project.empty() ? "Flaky tests" : "Flaky tests of " + report_.project;
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n<p>Drawn from "
        "{2}.</p>\n",
        html_text(title), style_sheet, html_text(evidence_of(report_)));
    if (report_.causes.empty()) put("<p>No test failed and passed on the same code.</p>\n");
    for (const ReportedCause& one : report_.causes) cause(one);
    if (report_.causes_left_out > 0)
      put("<p class=\"faint\">{} hit fewer builds and are left out.</p>\n",
          counted(static_cast<long long>(report_.causes_left_out), "more cause"));
    put("<p class=\"faint\">Written {} UTC. Intervals are exact, at 95 % confidence (Clopper and "
        "Pearson).</p>\n</body>\n</html>\n",
        timestamp_in_minutes(report_.written));
    return std::move(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void cause(const ReportedCause& one) {
    put("<section class=\"{}\"><h2>{}</h2>\n<dl>\n", one.is_open ? "open" : "closed",
        html_text(one.title));
    for (const CauseFact& fact : facts_of(one, report_.today))
      put("<dt>{}</dt><dd>{}</dd>\n", fact.label, html_prose(fact.text));
    put("</dl>\n");
    put_trend(one);
    tests(one);
    if (one.repro)
      repro(*one.repro);
    else if (!one.next.empty())
      put("<p>Not reproduced yet. Next:</p>\n<pre>{}</pre>\n", html_text(one.next, 2000));
    put("</section>\n");
  }

  void put_trend(const ReportedCause& one) {
    if (one.hits_per_day.empty()) return;
    if (std::ranges::max(one.hits_per_day) == 0)
      return put("<p class=\"faint\">no build failed so in these days{}</p>\n",
                 one.most_builds == 0 ? ": it was seen in local runs only" : "");
    put("<p class=\"faint\">tests that failed so, per day and build</p>\n{}",
        trend_svg(one.hits_per_day, report_.first_day));
  }

  void tests(const ReportedCause& one) {
    put("<div class=\"wide\"><table><tr><th>test</th><th>failure</th><th>rate</th><th>builds</th>"
        "<th>since</th><th>last seen (UTC)</th></tr>\n");
    for (const ReportedTest& test : one.tests)
      put("<tr><td class=\"name\"><code>{}</code></td><td class=\"name\"><code>{}</code></td>"
          "<td>{}</td><td>{}</td><td class=\"short\">{}</td><td class=\"short\">{}</td></tr>\n",
          html_cell(to_string(test.test)), html_cell(test.headline),
          html_cell(rate_text(test.failures, test.runs)), test.builds,
          timestamp_in_minutes(test.first), timestamp_in_minutes(test.last));
    put("</table></div>\n");
    if (one.tests_left_out > 0)
      put("<p class=\"faint\">{} not listed.</p>\n",
          counted(static_cast<long long>(one.tests_left_out), "more failure"));
  }

  void repro(const ReportedRepro& one) {
    put("<p><b>Reproduced:</b> {}{}</p>\n", html_text(one.how_often),
        one.slack.empty() ? "" : "; slack " + html_text(one.slack));
    if (!one.category.empty())
      put("<p><b>Root cause: {}.</b> {}</p>\n", html_prose(one.category), html_prose(one.advice));
    if (!one.story.empty()) put("<ul>\n");
    for (const std::string& line : one.story) put("<li>{}</li>\n", html_prose(line));
    if (!one.story.empty()) put("</ul>\n");
    put("<pre>{}\n{}</pre>\n", html_text(one.replay, 2000), html_text(one.explain, 2000));
  }

  const CauseReport& report_;
  std::string text_;
};

}  // namespace

std::string cause_report_html(const CauseReport& report) {
  return HtmlWriter(report)();
}

}  // namespace unflake
