#include "report/balance_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/explanation_pages.h"
#include "report/layout.h"
#include "stats/rates.h"

namespace unflake {
namespace {

constexpr double left = 60, top = 46, width = 620, height = 220, right = left + width;
constexpr double bottom = top + height;
constexpr double room_for_zero = 50;  // left of a logarithmic axis
constexpr size_t most_points = 500;

std::string class_of(LoadLevel load) {
  std::string name(to_string(load));
  std::erase(name, ' ');
  return name;
}

// What was measured with the same value at several loads is shown side by side.
double shift_of(LoadLevel load) {
  switch (load) {
    case LoadLevel::idle:
      return 0;
    case LoadLevel::busy:
      return 7;
    case LoadLevel::one_core:
      break;
  }
  return -7;
}

// From values to places: logarithmic when the values are far apart, with a separate place for
// zero.
class ValueAxis {
 public:
  explicit ValueAxis(const std::set<Duration>& values) {
    for (const Duration value : values) {
      if (value <= Duration::zero()) continue;
      least_ = least_ == 0 ? us(value) : std::min(least_, us(value));
      most_ = std::max(most_, us(value));
    }
    most_ = std::max(most_, 1.0);
    is_log_ = least_ > 0 && most_ > 8 * least_;
    has_zero_ = values.contains(Duration::zero());
  }

  double x_of(Duration value) const {
    if (!is_log_) return left + width * us(value) / most_;
    const double start = left + (has_zero_ ? room_for_zero : 0);
    if (value <= Duration::zero()) return left;
    return start + (right - start) * std::log(us(value) / least_) / std::log(most_ / least_);
  }

  std::vector<Duration> ticks() const {
    std::vector<Duration> all;
    if (has_zero_ || !is_log_) all.push_back(Duration::zero());
    if (!is_log_) {
      const double step = axis_step(most_);
      for (double at = step; at <= most_; at += step) all.push_back(whole(at));
      return all;
    }
    const bool is_wide = most_ > 300 * least_;
    for (double power = std::pow(10, std::floor(std::log10(least_))); power <= most_; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if ((factor == 1 || !is_wide) && factor * power >= least_ && factor * power <= most_)
          all.push_back(whole(factor * power));
    return all;
  }

 private:
  static double us(Duration value) { return static_cast<double>(value.count()); }
  static Duration whole(double us) { return Duration(std::llround(us)); }

  double least_ = 0, most_ = 0;
  bool is_log_ = false, has_zero_ = false;
};

class Plot {
 public:
  Plot(const BalanceReport& report, size_t index)
      : report_(report), index_(index), value_(report.values[index]), axis_(choose()) {}

  std::string operator()() {
    if (settings_.size() < 2) return "";
    put("<svg class=\"balance\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"failure "
        "rate and run time by value\">\n",
        right + 90, bottom + 44);
    draw_axes();
    for (const auto& at : value_.loads) draw_limit(at);
    draw_mark("now", "now", value_.value.most, top - 26);
    if (value_.is_changed()) draw_mark("proposed", "proposed", value_.proposed, top - 10);
    for (const LoadLevel load : {LoadLevel::idle, LoadLevel::busy, LoadLevel::one_core})
      draw_times(load);
    for (const TriedSetting* setting : settings_) draw(*setting);
    return text_ + "</svg>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  // Settings and the values on the axis.
  std::set<Duration> choose() {
    std::set<Duration> varied;
    for (const auto* settings : {&report_.base, &report_.tried})
      for (const TriedSetting& one : *settings) {
        if (one.failures.runs <= 0 || index_ >= one.values.size()) continue;
        if (settings_.size() >= most_points) continue;
        settings_.push_back(&one);
        varied.insert(one.values[index_]);
        slowest_ = std::max(slowest_, one.run_time.median);
      }
    if (varied.size() < 2) settings_.clear();
    if (!(slowest_ > 0)) slowest_ = 1;
    std::ranges::stable_sort(settings_, {}, [&](const TriedSetting* one) { return at(*one); });
    add_marks(varied);
    return varied;
  }

  void add_marks(std::set<Duration>& values) const {
    values.insert(value_.value.most);
    if (value_.is_changed()) values.insert(value_.proposed);
    for (const auto& limit : value_.loads)
      if (limit.fails) values.insert({limit.smallest, *limit.fails});
  }

  Duration at(const TriedSetting& setting) const { return setting.values[index_]; }
  static double y_of(double rate) { return top + height * (1 - std::clamp(rate, 0.0, 1.0)); }
  double y_of_time(double ms) const { return y_of(ms / (1.1 * slowest_)); }

  void draw_axes() {
    for (const int part : {0, 25, 50, 75, 100})
      put("<line class=\"grid\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text "
          "class=\"rate\" x=\"{3:.0f}\" y=\"{4:.1f}\">{5} %</text>\n",
          left, right, y_of(part / 100.0), left - 14, y_of(part / 100.0) + 4, part);
    put("<text class=\"rate\" x=\"{0:.0f}\" y=\"{1:.0f}\">failed</text><text class=\"time\" "
        "x=\"{2:.0f}\" y=\"{1:.0f}\">median run</text>\n",
        left - 14, top - 14, right + 14);
    const double step = axis_step(1.1 * slowest_);
    for (double ms = 0; ms <= 1.1 * slowest_; ms += step)
      put("<text class=\"time\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>\n", right + 14,
          y_of_time(ms) + 4, ms_text(ms));
    for (const Duration tick : axis_.ticks())
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/><text "
          "class=\"tick\" x=\"{0:.1f}\" y=\"{3:.0f}\">{4}</text>\n",
          axis_.x_of(tick), bottom, bottom + 5, bottom + 18, value_text(tick));
    put("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">value {}</text>\n", left + width / 2,
        bottom + 38, index_ + 1);
  }

  void draw_limit(const BalancedValue::AtLoad& limit) {
    if (!limit.fails || *limit.fails >= limit.smallest) return;
    const double from = axis_.x_of(*limit.fails), to = axis_.x_of(limit.smallest);
    put("<rect class=\"limit {}\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\">"
        "<title>{}: {} does not hold, {} does</title></rect>\n",
        class_of(limit.load), from, top, std::max(2.0, to - from), height, to_string(limit.load),
        value_text(*limit.fails), value_text(limit.smallest));
  }

  void draw_mark(const char* kind, const char* name, Duration value, double y) {
    const double x = axis_.x_of(value);
    const bool is_left = x < left + width / 2;
    put("<g class=\"mark {0}\"><line x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.0f}\" y2=\"{3:.0f}\"/>"
        "<text class=\"{4}\" x=\"{5:.1f}\" y=\"{2:.0f}\">{6} {7}</text></g>\n",
        kind, x, y, bottom, is_left ? "after" : "before", x + (is_left ? 5 : -5), name,
        value_text(value));
  }

  // One line joins what differs only in this value.
  void draw_times(LoadLevel load) {
    const std::string with_own =
        times_where(load, [](const BalancedValue& other) { return other.value.most; });
    const std::string with_proposed =
        times_where(load, [](const BalancedValue& other) { return other.proposed; });
    const std::string& points = with_own.size() < with_proposed.size() ? with_proposed : with_own;
    if (!points.empty())
      put("<polyline class=\"times {}\" points=\"{}\"/>\n", class_of(load), points);
  }

  std::string times_where(LoadLevel load, Duration (*wanted)(const BalancedValue&)) const {
    std::string points;
    for (const TriedSetting* one : settings_)
      if (one->load == load && one->run_time.count > 0 &&
          others_are(*one, [&](const BalancedValue& other, Duration value) {
            return value == wanted(other);
          }))
        points += fmt::format("{:.1f},{:.1f} ", axis_.x_of(at(*one)) + shift_of(load),
                              y_of_time(one->run_time.median));
    return points;
  }

  template <class Check>
  bool others_are(const TriedSetting& setting, Check check) const {
    for (size_t i = 0; i < std::min(setting.values.size(), report_.values.size()); ++i)
      if (i != index_ && !check(report_.values[i], setting.values[i])) return false;
    return true;
  }

  // The other values are as they are now or as proposed: what is seen is due to this one.
  bool is_alone(const TriedSetting& setting) const {
    return others_are(setting, [](const BalancedValue& other, Duration value) {
      return value == other.value.most || value == other.proposed;
    });
  }

  void draw(const TriedSetting& setting) {
    const Count& count = setting.failures;
    const Interval interval = count.interval(report_.confidence);
    const double x = axis_.x_of(at(setting)) + shift_of(setting.load);
    put("<g class=\"point {0}{1}\"><title>{2}</title><line x1=\"{3:.1f}\" x2=\"{3:.1f}\" "
        "y1=\"{4:.1f}\" "
        "y2=\"{5:.1f}\"/>",
        class_of(setting.load), is_alone(setting) ? "" : " joint", html_text(title_of(setting)), x,
        y_of(interval.high), y_of(interval.low));
    draw_shape(setting.load, x, y_of(static_cast<double>(count.hits) / count.runs));
    put("</g>\n");
  }

  std::string title_of(const TriedSetting& setting) const {
    std::string text = fmt::format("{}, {}: {}", value_text(at(setting)), to_string(setting.load),
                                   failures_text(setting.failures, report_.confidence));
    if (setting.run_time.count > 0)
      text += fmt::format(", median run {}", ms_text(setting.run_time.median));
    return is_alone(setting) ? text : text + ", other values differ too";
  }

  void draw_shape(LoadLevel load, double x, double y) {
    switch (load) {
      case LoadLevel::idle:
        put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>", x, y);
        return;
      case LoadLevel::busy:
        put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\"/>", x - 4, y - 4);
        return;
      case LoadLevel::one_core:
        put("<path d=\"M{:.1f} {:.1f}l5 9h-10z\"/>", x, y - 5);
        return;
    }
  }

  const BalanceReport& report_;
  const size_t index_;
  const BalancedValue& value_;
  std::vector<const TriedSetting*> settings_;  // by this value
  double slowest_ = 0;                         // ms
  ValueAxis axis_;                             // last: it needs what choose() found
  std::string text_;
};

}  // namespace

std::string balance_svg(const BalanceReport& report, size_t value) {
  return value < report.values.size() ? Plot(report, value)() : "";
}

namespace {

constexpr size_t most_sections = 200;  // tests of a suite that are shown in full

constexpr const char* balance_style = R"css(
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
    text_ += html_list(words.notes);
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
        html_text(title), balance_style, html_text(heading), html_prose(result));
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
    text_ += html_list("In third-party code", words.foreign);
    if (const BalanceTable front = settings_table(report, false); !front.rows.empty()) {
      put("<h2>Measured</h2>\n");
      table(front);
      put("<details><summary>All settings tried</summary>\n");
      table(settings_table(report, true));
      put("</details>\n");
    }
    text_ += html_list(words.measured);
    text_ += html_list("What this shows", words.meaning);
    text_ += html_list("Notes", words.notes);
  }

  void one_value(const BalanceReport& report, const BalancedValueWords& words) {
    put("<section{}><h3>{}</h3>\n<p class=\"result\">{}</p>\n",
        words.is_changed ? " class=\"changed\"" : "", html_text(words.title),
        html_prose(words.proposal));
    text_ += html_list(words.facts);
    text_ += html_list(words.evidence);
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

  void table(const BalanceTable& cells) {
    if (cells.rows.empty()) return;
    put("<div class=\"wide\"><table>\n");
    row("th", cells.header);
    for (const auto& one : cells.rows) row("td", one);
    put("</table></div>\n");
    text_ += html_list(cells.remarks);
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
