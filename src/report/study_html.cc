#include "report/study_html.h"

#include <fmt/format.h>

#include "report/html_text.h"

namespace unflake {
namespace {

constexpr const char* style_sheet = R"css(
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

constexpr double left = 150, width = 560, row_height = 34;

class PageOfTables {
 public:
  std::string operator()(const std::vector<StudyTable>& tables,
                         const std::vector<std::string>& notes) {
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Flaky tests: a study</title>\n<style>{}</style>\n</head>\n<body>\n"
        "<h1>Flaky tests: a study</h1>\n",
        style_sheet);
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

  static double x_of(double rate) { return left + width * rate; }

  void plot(const std::vector<StudyTable::Box>& boxes) {
    const double height = row_height * static_cast<double>(boxes.size()) + 10;
    put("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"failure rates of flaky "
        "tests\">\n",
        left + width + 30, height + 24);
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
        std::max(1.0, width * (rates.upper_quartile - rates.lower_quartile)));
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

}  // namespace unflake
