#include "report/balance_html.h"

#include <fmt/format.h>

#include "report/balance_svg.h"
#include "report/balance_words.h"
#include "report/html_text.h"
#include "report/style.h"

namespace unflake {
namespace {

constexpr size_t most_sections = 200;  // tests of a suite that are told of in full

constexpr const char* style_sheet = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #59636e; --line: #d1d9e0;
  --card: #f6f8fa; --bad: #c62828; --good: #1a7f37; --idle: #0969da; --busy: #c2570c; --onecore: #8250df; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1;
  --line: #3d444d; --card: #161b22; --bad: #ff7b72; --good: #3fb950; --idle: #58a6ff; --busy: #ffa657;
  --onecore: #bc8cff; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0 0 .3rem; overflow-wrap: anywhere; } p, li { overflow-wrap: anywhere; }
ul { margin: .3rem 0; padding-left: 1.2rem; } .faint { color: var(--faint); } .result { font-weight: 600; }
section { border: 1px solid var(--line); border-left: .35rem solid var(--line); background: var(--card);
  border-radius: .4rem; padding: .6rem 1rem; margin: 1rem 0; } section.changed { border-left-color: var(--good); }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .8rem; overflow-x: auto; }
pre span { display: block; } .old { color: var(--bad); } .new { color: var(--good); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0; border-top: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; white-space: nowrap; } summary { cursor: pointer; margin: .6rem 0; }
figure { margin: .6rem 0; overflow-x: auto; } figcaption { font-size: 13px; }
svg { box-sizing: border-box; width: 100%; min-width: 38rem; max-width: 52rem; height: auto; background: var(--paper); border: 1px solid var(--line); border-radius: .4rem; }
svg text { fill: var(--faint); font: 11px system-ui, sans-serif; } .grid { stroke: var(--line); }
text.tick { text-anchor: middle; } text.rate, text.before { text-anchor: end; }
.idle { color: var(--idle); } .busy { color: var(--busy); } .onecore { color: var(--onecore); }
.limit { fill: currentColor; opacity: .2; } .times { fill: none; stroke: currentColor; stroke-dasharray: 5 3; stroke-width: 1.5; }
.point line { stroke: currentColor; } .point circle, .point rect, .point path { fill: currentColor; } .joint { opacity: .35; }
.mark line { stroke: var(--faint); } .mark.proposed line { stroke: var(--good); stroke-width: 2; }
.mark.proposed text { fill: var(--good); font-weight: 600; } .key span { margin-right: 1rem; }
)css";

class PageOfValues {
 public:
  std::string one(const BalanceReport& report) {
    const BalanceWords words = words_of(report);
    begin(words.test + ": time values", words.test, words.result);
    body(report, words);
    return text_ + "</body>\n</html>\n";
  }

  std::string suite(const SuiteBalance& suite) {
    const SuiteBalanceWords words = words_of(suite);
    begin("Time values", "Time values", words.result);
    table(words.ranking);
    items(words.notes);
    size_t shown = 0, left_out = 0;
    for (const SuiteBalance::Entry& entry : suite.entries) {
      if (!entry.report || entry.report->values.empty()) continue;
      if (++shown > most_sections)
        ++left_out;
      else
        test(*entry.report);
    }
    if (left_out > 0)
      put("<p class=\"faint\">{} not told of in full: the JSON has all.</p>\n",
          counted(static_cast<long long>(left_out), "more test"));
    return text_ + "</body>\n</html>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void begin(const std::string& title, const std::string& heading, const std::string& result) {
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n"
        "<p class=\"result\">{}</p>\n",
        html_text(title), style_sheet, html_text(heading), html_prose(result));
  }

  void test(const BalanceReport& report) {
    const BalanceWords words = words_of(report);
    put("<details><summary><b>{}</b>: {}</summary>\n", html_text(words.test),
        html_prose(words.result));
    body(report, words);
    put("</details>\n");
  }

  void body(const BalanceReport& report, const BalanceWords& words) {
    for (const BalancedValueWords& value : words.values) one_value(report, value);
    list("In third-party code", words.foreign);
    if (const BalanceTable front = settings_table(report, false); !front.rows.empty()) {
      put("<h2>Measured</h2>\n");
      table(front);
      put("<details><summary>All settings tried</summary>\n");
      table(settings_table(report, true));
      put("</details>\n");
    }
    items(words.measured);
    list("What this shows", words.meaning);
    list("Notes", words.notes);
  }

  void one_value(const BalanceReport& report, const BalancedValueWords& words) {
    put("<section{}><h3>{}</h3>\n<p class=\"result\">{}</p>\n",
        words.is_changed ? " class=\"changed\"" : "", html_text(words.title),
        html_prose(words.proposal));
    items(words.facts);
    items(words.evidence);
    for (const std::string& advice : words.advice) put("<p>{}</p>\n", html_prose(advice));
    if (!words.place.empty()) put("<p><code>{}</code></p>\n", html_text(words.place));
    if (!words.old_line.empty())
      put("<pre><span class=\"old\">- {}</span><span class=\"new\">+ {}</span></pre>\n",
          html_text(words.old_line), html_text(words.new_line));
    if (!words.caution.empty()) put("<p>{}</p>\n", html_prose(words.caution));
    plot(balance_svg(report, words.index));
    put("</section>\n");
  }

  void plot(const std::string& svg) {
    if (svg.empty()) return;
    put("<figure><figcaption class=\"key\"><span class=\"idle\">&#9679; idle</span><span "
        "class=\"busy\">&#9632; busy</span><span class=\"onecore\">&#9650; one core</span><span>"
        "shapes: failure rate with its interval (left)</span><span>dashed: median run "
        "(right)</span>"
        "<span>band: where the limit lies</span></figcaption>\n{}</figure>\n",
        svg);
  }

  void items(const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    put("<ul>\n");
    for (const std::string& line : lines) put("<li>{}</li>\n", html_prose(line));
    put("</ul>\n");
  }

  void list(const char* heading, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    put("<h2>{}</h2>\n", heading);
    items(lines);
  }

  void table(const BalanceTable& cells) {
    if (cells.rows.empty()) return;
    put("<div class=\"wide\"><table>\n");
    row("th", cells.header);
    for (const auto& one : cells.rows) row("td", one);
    put("</table></div>\n");
    items(cells.remarks);
  }

  void row(const char* tag, const std::vector<std::string>& cells) {
    put("<tr>");
    for (const std::string& cell : cells) put("<{0}>{1}</{0}>", tag, html_cell(cell));
    put("</tr>\n");
  }

  std::string text_;
};

}  // namespace

std::string balance_html(const BalanceReport& report) {
  return PageOfValues().one(report);
}

std::string suite_balance_html(const SuiteBalance& suite) {
  return PageOfValues().suite(suite);
}

}  // namespace unflake
