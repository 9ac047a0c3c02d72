
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/cause_pages.h"
#include "report/layout.h"
#include "report/repair_text.h"
#include "stats/rates.h"
#include "util/json.h"
#include "util/text.h"
#include "util/time.h"

namespace unflake {
namespace {

// A commit is letters and digits; anything else a build server put there is left out.
std::string commit_cell(const std::string& commit) {
  std::string plain;
  for (const char c : commit.substr(0, 10))
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) plain += c;
  return plain.empty() ? "unknown commit" : "commit " + plain;
}

std::string builds_text(const ReportedCause& cause) {
  if (cause.most_builds == 0) return "none, it was seen in local runs only";
  const std::string number =
      cause.fewest_builds == cause.most_builds
          ? counted(cause.most_builds, "build")
          : fmt::format("{} to {} builds", cause.fewest_builds, cause.most_builds);
  if (cause.suppressed_builds == 0) return number + ", none kept from failing by quarantine";
  return fmt::format("{}, {} kept from failing by quarantine", number,
                     counted(cause.suppressed_builds, "failure"));
}

std::string rate_of(const ReportedCause& cause) {
  const bool cut =
      std::ranges::any_of(cause.tests, [](const ReportedTest& test) { return test.runs_cut; });
  return rate_text(cause.failures, cause.runs) + (cut ? ", of the newest runs" : "");
}

std::string owners_of(const ReportedCause& cause) {
  std::set<std::string> owners;
  for (const ReportedTest& test : cause.tests)
    if (!test.owner.empty()) owners.insert(test.owner);
  return join({owners.begin(), owners.end()}, ", ");
}

std::string quarantine_text(const ReportedCause& cause, Day today) {
  std::optional<Day> until;
  size_t inside = 0;
  for (const ReportedTest& test : cause.tests) {
    if (!test.quarantined_until) continue;
    ++inside;
    until = std::min(until.value_or(*test.quarantined_until), *test.quarantined_until);
  }
  if (inside == 0) return "no";
  const char* what = *until < today ? "expired on" : "until";
  return fmt::format("{} of {}, {} {}", inside,
                     counted(static_cast<long long>(cause.tests.size()), "failure"), what,
                     format_day(*until));
}

std::string state_text(const ReportedCause& cause) {
  std::string text = cause.is_open ? "open" : "closed";
  if (cause.reopened > 0) text += fmt::format(", came back {}", counted(cause.reopened, "time"));
  return text;
}

}  // namespace

std::vector<CauseFact> facts_of(const ReportedCause& cause, Day today) {
  std::vector<CauseFact> facts{
      {"Rate", rate_of(cause), false},
      {"Since",
       fmt::format("{}, {} UTC", commit_cell(cause.first_commit),
                   timestamp_in_minutes(cause.first)),
       false},
      {"Last seen", timestamp_in_minutes(cause.last) + " UTC", false},
      {"Builds hit", builds_text(cause), false},
      {"Time wasted", format_duration(cause.wasted) + " in failing runs and in trying again",
       false},
      {"Quarantined", quarantine_text(cause, today), false},
      {"State", state_text(cause), false}};
  if (const std::string owners = owners_of(cause); !owners.empty())
    facts.push_back({"Owner", owners, true});
  if (!cause.issue.empty()) facts.push_back({"Issue", cause.issue, true});
  return facts;
}

std::string evidence_of(const CauseReport& report) {
  return fmt::format("{} in {} from {} to {} (UTC); {} of these builds had a flaky failure",
                     counted(report.runs, "run"), counted(report.builds, "build"),
                     format_day(report.first_day), format_day(report.last_day),
                     report.flaky_builds);
}

namespace {

class MarkdownWriter {
 public:
  std::string take() { return std::move(text_); }

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void facts(const ReportedCause& cause, Day today) {
    for (const CauseFact& fact : facts_of(cause, today))
      put("- **{}:** {}\n", fact.label,
          fact.is_foreign ? markdown_code(fact.text, 500) : fact.text);
    put("\n");
  }

  void tests(const ReportedCause& cause) {
    put("| test | failure | rate | builds | last seen (UTC) |\n|---|---|---|---:|---|\n");
    for (const ReportedTest& test : cause.tests)
      put("| {} | {} | {} | {} | {} |\n", markdown_code(to_string(test.test)),
          markdown_code(test.headline), rate_text(test.failures, test.runs), test.builds,
          timestamp_in_minutes(test.last));
    if (cause.tests_left_out > 0)
      put("\n{} not listed.\n",
          counted(static_cast<long long>(cause.tests_left_out), "more failure"));
    put("\n");
  }

  void repro(const ReportedRepro& repro) {
    put("**Reproduced:** {}", markdown_code(repro.how_often, 500));
    if (!repro.slack.empty()) put("; slack {}", markdown_code(repro.slack));
    put("\n\n");
    if (!repro.category.empty()) put("**Root cause:** {}. {}\n\n", repro.category, repro.advice);
    for (const std::string& line : repro.story) put("- {}\n", markdown_code(line, 500));
    put("\n{}\n", markdown_block(repro.replay + "\n" + repro.explain));
    if (repro.patch) put("{}", proposed_patch_markdown(*repro.patch));
  }

  void what_next(const std::string& command) {
    if (command.empty()) return;
    put("Not reproduced yet. Next:\n\n{}\n", markdown_block(command));
  }

 private:
  std::string text_;
};

std::string heading_of(const ReportedCause& cause) {
  if (cause.tests.empty()) return fmt::format("cause {}", cause.id);
  const size_t more = cause.tests.size() - 1 + cause.tests_left_out;
  std::string heading = markdown_code(to_string(cause.tests.front().test), 150);
  if (more > 0) heading += " and " + counted(static_cast<long long>(more), "more test");
  if (cause.id != 0) heading += fmt::format(" (cause {})", cause.id);
  return heading;
}

}  // namespace

std::string cause_markdown(const ReportedCause& cause, Day today) {
  MarkdownWriter out;
  out.put("{}\n\n", markdown_code(cause.title, 300));
  out.facts(cause, today);
  out.tests(cause);
  if (cause.repro)
    out.repro(*cause.repro);
  else
    out.what_next(cause.next);
  return out.take();
}

std::string cause_report_markdown(const CauseReport& report) {
  MarkdownWriter out;
  out.put("# Flaky tests{}\n\n",
          report.project.empty() ? "" : " of " + markdown_code(report.project));
  out.put("Drawn from {}.\n\n", evidence_of(report));
  if (report.causes.empty()) out.put("No test failed and passed on the same code.\n");
  size_t number = 0;
  for (const ReportedCause& cause : report.causes)
    out.put("## {}. {}\n\n{}", ++number, heading_of(cause), cause_markdown(cause, report.today));
  if (report.causes_left_out > 0)
    out.put("{} hit fewer builds and are left out; `--most N` shows them.\n",
            counted(static_cast<long long>(report.causes_left_out), "more cause"));
  return out.take();
}

namespace {

constexpr double trend_width = 600, trend_height = 60, trend_label = 16;
constexpr size_t most_bars = 400;  // the newest days of a longer window

}  // namespace

std::string trend_svg(std::span<const int64_t> per_day, Day first_day) {
  if (per_day.empty()) return "";
  const size_t skipped = per_day.size() - std::min(per_day.size(), most_bars);
  const auto shown = per_day.subspan(skipped);
  const double step = trend_width / static_cast<double>(shown.size());
  const int64_t highest = std::ranges::max(shown);
  const double scale = trend_height / static_cast<double>(std::max<int64_t>(1, highest));
  std::string svg = fmt::format(
      "<svg class=\"trend\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"failures per day, at most {}\">\n",
      trend_width, trend_height + trend_label, highest);
  for (size_t day = 0; day < shown.size(); ++day) {
    const Day date = first_day + std::chrono::days(skipped + day);
    const double tall = scale * static_cast<double>(shown[day]);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
        "<title>{}: {}</title></rect>\n",
        step * static_cast<double>(day), trend_height - std::max(tall, 1.0), step * 0.8,
        std::max(tall, 1.0), format_day(date), shown[day]);
  }
  const Day last = first_day + std::chrono::days(per_day.size() - 1);
  return svg + fmt::format(
                   "<text x=\"0\" y=\"{0}\">{1}</text><text class=\"end\" x=\"{2}\" y=\"{0}\">{3}, "
                   "highest {4}</text></svg>\n",
                   trend_height + trend_label - 3,
                   format_day(first_day + std::chrono::days(skipped)), trend_width,
                   format_day(last), highest);
}

namespace {

constexpr const char* cause_style = R"css(
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
        html_text(title), cause_style, html_text(evidence_of(report_)));
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
    if (one.patch) put("{}", proposed_patch_html(*one.patch));
  }

  const CauseReport& report_;
  std::string text_;
};

}  // namespace

std::string cause_report_html(const CauseReport& report) {
  return HtmlWriter(report)();
}

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
  return {{"replay", repro.replay},
          {"explain", repro.explain},
          {"how_often", repro.how_often},
          {"slack", repro.slack},
          {"category", repro.category},
          {"advice", repro.advice},
          {"story", repro.story},
          {"patch", repro.patch ? proposed_patch_json(*repro.patch) : Json()}};
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
