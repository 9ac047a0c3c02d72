#include "report/dose_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/timeline_svg.h"
#include "stats/rates.h"

namespace unflake {
namespace {

constexpr double left = 60, top = 14, width = 620, height = 200;
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
        left + width + 30, top + height + 44);
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
    return left +
           width * static_cast<double>(delay.count()) / static_cast<double>(longest_.count());
  }
  static double y_of(double rate) { return top + height * (1 - rate); }
  static double rate_of(const Dose& dose) {
    return std::clamp(static_cast<double>(dose.failures.hits) / dose.failures.runs, 0.0, 1.0);
  }

  void draw_axes() {
    for (const int part : {0, 25, 50, 75, 100})
      put("<line class=\"grid\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text "
          "class=\"rate\" x=\"{3:.0f}\" y=\"{4:.1f}\">{5} %</text>\n",
          left, left + width, y_of(part / 100.0), left - 8, y_of(part / 100.0) + 4, part);
    const double step = axis_step(static_cast<double>(longest_.count()));
    for (double at = 0; at <= static_cast<double>(longest_.count()); at += step) {
      const Duration delay(static_cast<int64_t>(at));
      put("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n", x_of(delay),
          top + height + 18, format_duration(delay));
    }
    put("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">late by</text>\n", left + width / 2,
        top + height + 38);
  }

  void draw_slack(const Slack& slack) {
    put("<rect class=\"slack\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\"><title>"
        "slack: between {} and {}</title></rect>\n",
        x_of(slack.passes), top, std::max(2.0, x_of(slack.fails) - x_of(slack.passes)), height,
        format_duration(slack.passes), format_duration(slack.fails));
  }

  void draw_curve() {
    std::string points;
    for (const Dose& dose : doses_)
      points += fmt::format("{:.1f},{:.1f} ", x_of(dose.delay), y_of(rate_of(dose)));
    put("<polyline class=\"curve\" points=\"{}\"/>\n", points);
  }

  void draw(const Dose& dose) {
    const Interval interval = exact_interval(dose.failures.hits, dose.failures.runs);
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

}  // namespace unflake
