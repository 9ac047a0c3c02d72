#include "report/explanation_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/layout.h"
#include "report/repair_text.h"
#include "report/search_text.h"
#include "stats/rates.h"

namespace unflake {
namespace {

constexpr double dose_left = 60, dose_top = 14, dose_width = 620, dose_height = 200;
constexpr size_t most_doses = 500;

class Chart {
 public:
  explicit Chart(const Repro& repro) : repro_(repro) {
    for (const Dose& dose : repro_.doses)
      if (dose.failures.runs > 0 && doses_.size() < most_doses) doses_.push_back(dose);
    for (const Dose& dose : doses_) longest_ = std::max(longest_, dose.delay);
    if (repro_.slack) longest_ = std::max(longest_, repro_.slack->fails);
  }

  std::string operator()() {
    if (doses_.empty()) return "";
    put("<svg class=\"dose\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"failures by "
        "delay\">\n",
        dose_left + dose_width + 30, dose_top + dose_height + 44);
    draw_axes();
    if (repro_.slack) draw_slack(*repro_.slack);
    draw_curve();
    for (const Dose& dose : doses_) draw(dose);
    return text_ + "</svg>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  double x_of(Duration delay) const {
    return dose_left +
           dose_width * static_cast<double>(delay.count()) / static_cast<double>(longest_.count());
  }
  static double y_of(double rate) { return dose_top + dose_height * (1 - rate); }
  static double rate_of(const Dose& dose) {
    return std::clamp(static_cast<double>(dose.failures.hits) / dose.failures.runs, 0.0, 1.0);
  }

  void draw_axes() {
    for (const int part : {0, 25, 50, 75, 100})
      put("<line class=\"grid\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text "
          "class=\"rate\" x=\"{3:.0f}\" y=\"{4:.1f}\">{5} %</text>\n",
          dose_left, dose_left + dose_width, y_of(part / 100.0), dose_left - 8,
          y_of(part / 100.0) + 4, part);
    const double step = axis_step(static_cast<double>(longest_.count()));
    for (double at = 0; at <= static_cast<double>(longest_.count()); at += step) {
      const Duration delay(static_cast<int64_t>(at));
      put("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n", x_of(delay),
          dose_top + dose_height + 18, format_duration(delay));
    }
    put("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">late by</text>\n",
        dose_left + dose_width / 2, dose_top + dose_height + 38);
  }

  void draw_slack(const Slack& slack) {
    put("<rect class=\"slack\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\"><title>"
        "slack: between {} and {}</title></rect>\n",
        x_of(slack.passes), dose_top, std::max(2.0, x_of(slack.fails) - x_of(slack.passes)),
        dose_height, format_duration(slack.passes), format_duration(slack.fails));
  }

  void draw_curve() {
    std::string points;
    for (const Dose& dose : doses_)
      points += fmt::format("{:.1f},{:.1f} ", x_of(dose.delay), y_of(rate_of(dose)));
    put("<polyline class=\"curve\" points=\"{}\"/>\n", points);
  }

  void draw(const Dose& dose) {
    const Interval interval = dose.failures.interval();
    put("<g class=\"point\"><title>{0}: {1} of {2} runs failed, 95 % interval {3}</title><line "
        "x1=\"{4:.1f}\" x2=\"{4:.1f}\" y1=\"{5:.1f}\" y2=\"{6:.1f}\"/><circle cx=\"{4:.1f}\" "
        "cy=\"{7:.1f}\" r=\"4\"/></g>\n",
        format_duration(dose.delay), dose.failures.hits, dose.failures.runs,
        interval_text(interval), x_of(dose.delay), y_of(interval.high), y_of(interval.low),
        y_of(rate_of(dose)));
  }

  const Repro& repro_;
  std::vector<Dose> doses_;
  Duration longest_{1};
  std::string text_;
};

}  // namespace

std::string dose_svg(const Repro& repro) {
  return Chart(repro)();
}

namespace {

constexpr const char* explanation_style = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --faint: #59636e; --line: #d1d9e0;
  --card: #f6f8fa; --bad: #c62828; --delay: #e8710a; --sleep: #8250df; --lock: #0969da;
  --signal: #1a7f37; --io: #0e7c86; --thread: #6e7781; --other: #a9b1ba; --mark: #b4236a; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1;
  --line: #3d444d; --card: #161b22; --bad: #ff7b72; --delay: #ffa657; --sleep: #bc8cff; --lock: #58a6ff;
  --signal: #3fb950; --io: #39c5cf; --thread: #9aa4ae; --other: #59636e; --mark: #ff7bb5; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
p, li { overflow-wrap: anywhere; } ul { margin: .3rem 0; padding-left: 1.2rem; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
.failed { color: var(--bad); } .faint { color: var(--faint); }
.summary { font-size: 1.15rem; } .summary code { font-size: .92em; }
.cause { border: 1px solid var(--line); border-left: .35rem solid var(--mark); background: var(--card);
  border-radius: .4rem; padding: .6rem 1rem; margin: 1rem 0; } .cause h2 { margin: 0; }
figure { margin: .6rem 0; overflow-x: auto; } svg.timeline { min-width: 58rem; } figcaption { font-weight: 600; margin-bottom: .2rem; }
svg { box-sizing: border-box; width: 100%; height: auto; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; }
svg.dose { max-width: 46rem; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--line); } text.tick { fill: var(--faint); text-anchor: middle; font-size: 11px; }
text.rate { fill: var(--faint); text-anchor: end; font-size: 11px; } text.lane { text-anchor: end; }
.life { stroke: var(--faint); stroke-width: 1.5; } text.call { fill: var(--paper); font-size: 11px; pointer-events: none; }
.delay, .hold { fill: var(--delay); } .sleep { fill: var(--sleep); } .lock { fill: var(--lock); } .signal { fill: var(--signal); }
.io { fill: var(--io); } .thread { fill: var(--thread); } .other { fill: var(--other); }
.failure line { stroke: var(--bad); stroke-dasharray: 4 3; } .failure path { stroke: var(--bad); stroke-width: 2.5; }
.link { stroke: var(--mark); stroke-width: 2; opacity: .7; } .mark circle { fill: var(--paper); stroke: var(--mark); stroke-width: 2; }
.mark text { text-anchor: middle; font-weight: 700; font-size: 11px; }
.slack { fill: var(--delay); opacity: .25; } .curve { fill: none; stroke: var(--lock); stroke-width: 1.5; }
.point line { stroke: var(--lock); } .point circle { fill: var(--lock); }
.key span { display: inline-block; margin-right: 1rem; } .key i { display: inline-block; width: .8rem; height: .8rem;
  border-radius: .2rem; margin-right: .3rem; vertical-align: -.1rem; background: currentColor; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .8rem; overflow-x: auto; }
pre b { display: block; color: var(--mark); font-weight: 600; } pre span { display: block; }
)css";

class PageWriter {
 public:
  explicit PageWriter(const ExplanationReport& report)
      : report_(report), words_(words_of(report)) {}

  std::string operator()() {
    begin();
    cause();
    text_ += html_list("What happens", words_.story);
    text_ += html_list("What experiments show", words_.experiments);
    timelines();
    for (const Quotation& quotation : words_.quotations) quote(quotation);
    figures();
    text_ += html_list("The plan", words_.plan);
    text_ += html_list("Notes", words_.notes);
    return text_ + "</body>\n</html>\n";
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void begin() {
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{0}: {1}</title>\n<style>{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n"
        "<p class=\"failed\">{3}</p>\n",
        html_text(words_.test), html_text(words_.cause), explanation_style,
        html_text(words_.failure));
    if (!words_.summary.empty()) put("<p class=\"summary\">{}</p>\n", html_prose(words_.summary));
  }

  void cause() {
    if (words_.is_margin)
      put("<section class=\"cause\"><h2>No flaw, a margin</h2>\n<p>It {}. What bounds it: "
          "{}.</p>\n",
          html_text(margin_words(report_.repro)), html_prose(words_.cause));
    else
      put("<section class=\"cause\"><h2>Root cause: {}</h2>\n", html_prose(words_.cause));
    text_ += html_list(words_.evidence);
    if (!words_.runner_up.empty() && !words_.is_margin)
      put("<p class=\"faint\">Or else {}</p>\n", html_prose(words_.runner_up));
    put("<p><b>What to do.</b> {}</p></section>\n", html_prose(words_.advice));
    if (report_.patch) put("{}", proposed_patch_html(*report_.patch));
  }

  void timelines() {
    if (!report_.passing && !report_.failing) return;
    put("<h2>The two runs</h2>\n<p class=\"key\">");
    for (const auto& [kind, name] :
         {std::pair("delay", "delay of the plan"), std::pair("sleep", "sleep"),
          std::pair("lock", "lock"), std::pair("signal", "condition, semaphore"),
          std::pair("io", "sockets, files"), std::pair("thread", "threads, processes"),
          std::pair("other", "other calls"), std::pair("bad", "failure")})
      put("<span><i style=\"color:var(--{})\"></i>{}</span>", kind, name);
    put("<span>1: critical point</span><span>2: barrier point</span></p>\n");
    const TimelineFrame whole = whole_frame(report_);
    const TimelineFrame near = frame_around_pair(report_, whole);
    if (near.from != whole.from || near.to != whole.to) both(near, ", around the pair");
    both(whole, "");
    if (whole.threads_left_out > 0)
      put("<p class=\"faint\">{} not shown</p>\n",
          counted(static_cast<long long>(whole.threads_left_out), "thread"));
  }

  void both(const TimelineFrame& frame, const char* part) {
    if (report_.passing) one("passing run", WhichRun::passing, frame, part);
    if (report_.failing) one("failing run", WhichRun::failing, frame, part);
  }

  void one(const char* name, WhichRun which, const TimelineFrame& frame, const char* part) {
    const Timeline timeline = timeline_svg(report_, which, frame);
    put("<figure><figcaption>{}{}</figcaption>\n{}", name, part, timeline.svg);
    if (timeline.left_out > 0)
      put("<p class=\"faint\">the {} longest calls are drawn, {} shorter ones are not</p>\n",
          timeline.drawn, timeline.left_out);
    put("</figure>\n");
  }

  void quote(const Quotation& quotation) {
    if (quotation.lines.empty()) return;
    put("<h2>{}</h2>\n<pre>", html_prose(quotation.title));
    for (const QuotedLine& line : quotation.lines)
      put("<{0}>{1:>5}  {2}</{0}>", line.is_meant ? "b" : "span", line.number,
          html_text(line.text));
    put("</pre>\n");
  }

  void figures() {
    const std::string chart = dose_svg(report_.repro);
    if (words_.figures.empty() && chart.empty()) return;
    text_ += html_list("Figures", words_.figures);
    if (!chart.empty())
      put("<figure><figcaption>failures by delay</figcaption>\n{}</figure>\n", chart);
  }

  const ExplanationReport& report_;
  const ExplanationWords words_;
  std::string text_;
};

}  // namespace

std::string explanation_html(const ExplanationReport& report) {
  return PageWriter(report)();
}

}  // namespace unflake
