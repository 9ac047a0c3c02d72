#include "report/explanation_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/layout.h"
#include "report/trace_text.h"
#include "trace/happens_before.h"
#include "trace/names.h"
#include "trace/roles.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_calls = 1500;
constexpr double label_width = 190, plot_width = 990, lane_height = 30, axis_height = 26;
constexpr size_t label_characters = 27;
constexpr double beside_marker = 11;  // a call may be the one that is marked

// The plan's number of a hold is in its object.
bool is_hold(const TracedCall& call) {
  return call.is_intervention && call.object != 0;
}

std::string_view class_of(const TracedCall& call, const TracedSite& site) {
  if (is_hold(call)) return "hold";
  return call.is_intervention ? "delay" : drawn_as(site);
}

class Drawing {
 public:
  Drawing(const ExplanationReport& report, WhichRun which, const TimelineFrame& frame)
      : report_(report),
        is_passing_(which == WhichRun::passing),
        trace_((is_passing_ ? report.passing : report.failing)->trace),
        wrappers_({&trace_}),
        frame_(frame) {}

  Timeline operator()() {
    begin();
    draw_axis();
    for (size_t i = 0; i < frame_.lanes.size(); ++i) draw_lane(i);
    draw_calls();
    draw_failures();
    if (report_.explanation.pair) draw_pair(*report_.explanation.pair);
    timeline_.svg += "</svg>\n";
    return std::move(timeline_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    timeline_.svg += fmt::format(format, std::forward<Args>(args)...);
  }

  double x_of(Duration time) const {
    const double part = static_cast<double>((time - frame_.from).count()) /
                        static_cast<double>((frame_.to - frame_.from).count());
    return label_width + plot_width * std::clamp(part, 0.0, 1.0);
  }

  bool is_seen(Duration time) const { return time >= frame_.from && time <= frame_.to; }

  double y_of(size_t lane) const { return axis_height + lane_height * static_cast<double>(lane); }
  double height() const { return y_of(frame_.lanes.size()); }

  std::optional<size_t> lane_of(const std::string& thread) const {
    const auto found = std::ranges::find(frame_.lanes, frame_.lane_of(thread));
    if (found == frame_.lanes.end()) return std::nullopt;
    return static_cast<size_t>(found - frame_.lanes.begin());
  }

  std::optional<size_t> lane_of(uint32_t thread) const {
    if (thread >= trace_.threads.size()) return std::nullopt;
    return lane_of(trace_.threads[thread].name.text);
  }

  void begin() {
    put("<svg class=\"timeline\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{} "
        "run\">\n",
        label_width + plot_width + 30, height() + 8, is_passing_ ? "passing" : "failing");
  }

  void draw_axis() {
    const double from = static_cast<double>(frame_.from.count());
    const double to = static_cast<double>(frame_.to.count());
    const double step = axis_step(to - from);
    for (int i = 0; i <= 10; ++i) {
      const double time = (std::floor(from / step) + i) * step;
      if (time < from || time > to) continue;
      const Duration at(static_cast<int64_t>(time));
      put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.1f}\"/>"
          "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.0f}\">{4}</text>\n",
          x_of(at), axis_height - 6, height(), axis_height - 11, format_duration(at));
    }
  }

  // "started by Pool::start": of what is too long, the end tells more than the namespaces.
  static std::string lane_label(const std::string& label) {
    if (label.size() <= label_characters) return label;
    const size_t name = label.rfind(' ') == std::string::npos ? 0 : label.rfind(' ') + 1;
    if (label.find("::", name) == std::string::npos) return shorten(label, label_characters);
    std::string function = spoken_function(label.substr(name));
    if (name + function.size() > label_characters)
      function = "..." + function.substr(function.rfind("::"));
    return shorten(label.substr(0, name) + function, label_characters);
  }

  void draw_lane(size_t lane) {
    const std::string& name = frame_.lanes[lane];
    const auto role = frame_.roles.find(name);
    const std::string& label = role == frame_.roles.end() ? name : role->second;
    put("<text class=\"lane\" x=\"{:.0f}\" y=\"{:.1f}\"><title>{}</title>{}</text>\n",
        label_width - 8, y_of(lane) + lane_height / 2 + 4, html_text(name),
        html_text(lane_label(label)));
    std::optional<Duration> from, to;  // of all that share it
    for (const TracedThread& thread : trace_.threads) {
      if (frame_.lane_of(thread.name.text) != name) continue;
      const Duration end = thread.ended == Duration::zero() ? last_seen() : thread.ended;
      from = std::min(from.value_or(thread.started), thread.started);
      to = std::max(to.value_or(end), end);
    }
    if (!from || *to < frame_.from || *from > frame_.to) return;
    put("<line class=\"life\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n",
        x_of(*from), x_of(*to), middle_of(lane));
  }

  Duration last_seen() const {
    Duration last{};
    for (const TracedCall& call : trace_.calls) last = std::max(last, call.exit);
    return last;
  }

  // Delays always, and the longest calls: short ones would be drawn over each other.
  std::vector<const TracedCall*> chosen_calls() {
    std::vector<const TracedCall*> calls;
    for (const TracedCall& call : trace_.calls)
      if (call.site < trace_.sites.size() && call.enter <= frame_.to && call.exit >= frame_.from &&
          lane_of(call.thread))
        calls.push_back(&call);
    std::ranges::stable_sort(calls, [](const TracedCall* a, const TracedCall* b) {
      if (a->is_intervention != b->is_intervention) return a->is_intervention;
      return a->exit - a->enter > b->exit - b->enter;
    });
    timeline_.drawn = std::min(calls.size(), most_calls);
    timeline_.left_out = calls.size() - timeline_.drawn;
    calls.resize(timeline_.drawn);
    std::ranges::stable_sort(calls, {}, [](const TracedCall* call) { return call->enter; });
    return calls;
  }

  void draw_calls() {
    for (const TracedCall* call : chosen_calls()) draw_call(*call);
  }

  void draw_call(const TracedCall& call) {
    const TracedSite& site = trace_.sites[call.site];
    const double left = x_of(call.enter);
    const double width = std::max(2.0, x_of(call.exit) - left);
    const std::string_view kind = class_of(call, site);
    const double y = y_of(*lane_of(call.thread)) + 5;
    const bool is_one_of_many = frame_.shared.contains(trace_.threads[call.thread].name.text);
    put("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
        "rx=\"2\"{}><title>{}</title></rect>\n",
        kind, left, y, width, lane_height - 10, is_one_of_many ? " fill-opacity=\"0.4\"" : "",
        tooltip(call, site));
    const std::string label = is_hold(call)          ? "waits"
                              : call.is_intervention ? "delay"
                                                     : site.name.api;
    if (!is_one_of_many && width > 7.0 * static_cast<double>(label.size()) + 14)
      put("<text class=\"call\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left + beside_marker,
          y + 14, html_text(label, 60));
  }

  // What a hold of the plan waits for.
  std::string waits_for(const TracedCall& call) const {
    const auto& plan = report_.repro.plan.interventions;
    const size_t number = call.object - 1;
    if (number >= plan.size() || !plan[number].until || *plan[number].until >= plan.size())
      return "another thread";
    return to_string(plan[*plan[number].until], plan);
  }

  std::string tooltip(const TracedCall& call, const TracedSite& site) const {
    std::string text = is_hold(call)          ? "waits for " + waits_for(call) + " at "
                       : call.is_intervention ? "delay of the plan at "
                                              : "";
    text += fmt::format("{}, {} for {}", to_string(site.name), format_duration(call.enter),
                        format_duration(call.exit - call.enter));
    if (call.timed_out) text += ", ran out";
    if (call.unfinished) text += ", never ended";
    const ThreadName& thread = trace_.threads[call.thread].name;
    if (frame_.shared.contains(thread.text)) text = told(thread) + ": " + text;
    const Frame* caller = caller_past(trace_, call, wrappers_);
    return html_text(text + " (" + (caller ? location_of(*caller) : site.location) + ")");
  }

  void draw_failures() {
    for (const TracedFailure& failure : trace_.failures) {
      const auto lane = lane_of(failure.thread);
      if (!lane || !is_seen(failure.at) || failure.kind == "thrown before") continue;
      const double x = x_of(failure.at);
      put("<g class=\"failure\"><title>{0}</title><line x1=\"{1:.1f}\" x2=\"{1:.1f}\" "
          "y1=\"{2:.0f}\" "
          "y2=\"{3:.1f}\"/><path d=\"M{4:.1f} {5:.0f}l8 8m0 -8l-8 8\"/></g>\n",
          html_text(failure_line(failure, trace_)), x, axis_height - 6, height(), x - 4,
          axis_height - 9);
    }
  }

  void draw_pair(const FlippedPair& pair) {
    const auto time_of = [&](const Moment& moment) {
      return is_passing_ ? moment.passing : moment.failing;
    };
    const auto one = time_of(pair.first), two = time_of(pair.second);
    const auto first = lane_of(pair.first.thread), second = lane_of(pair.second.thread);
    if (one && two && first && second && is_seen(*two))
      put("<line class=\"link\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
          x_of(*one), middle_of(*first), x_of(*two), middle_of(*second));
    if (one && first) draw_mark(*one, *first, 1, "the critical point");
    if (two && second) draw_mark(*two, *second, 2, "the barrier point");
  }

  double middle_of(size_t lane) const { return y_of(lane) + lane_height / 2; }

  void draw_mark(Duration at, size_t lane, int number, const char* title) {
    if (!is_seen(at)) return;
    put("<g class=\"mark\"><title>{0}, {1}</title><circle cx=\"{2:.1f}\" cy=\"{3:.1f}\" r=\"8\"/>"
        "<text x=\"{2:.1f}\" y=\"{4:.1f}\">{5}</text></g>\n",
        title, format_duration(at), x_of(at), middle_of(lane), middle_of(lane) + 4, number);
  }

  const ExplanationReport& report_;
  const bool is_passing_;
  const Trace& trace_;
  const Wrappers wrappers_;
  const TimelineFrame& frame_;
  Timeline timeline_;
};

}  // namespace

Timeline timeline_svg(const ExplanationReport& report, WhichRun which, const TimelineFrame& frame) {
  return Drawing(report, which, frame)();
}

namespace {

constexpr size_t most_lanes = 24;

Duration end_of(const ObservedRun* run) {
  Duration end{};
  if (!run) return end;
  for (const TracedCall& call : run->trace.calls) end = std::max(end, call.exit);
  for (const TracedThread& thread : run->trace.threads) end = std::max(end, thread.ended);
  for (const TracedFailure& failure : run->trace.failures) end = std::max(end, failure.at);
  return end;
}

std::vector<std::string> named_threads(const Explanation& found) {
  std::vector<std::string> names;
  if (found.pair) names = {found.pair->first.thread, found.pair->second.thread};
  if (found.failure) names.push_back(found.failure->thread);
  for (const Lateness& late : found.late) names.push_back(late.thread);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr size_t most_of_one_kind = 6;  // that have lanes of their own

// Which threads of both runs there are, in their order, and what they have in common.
class LaneFinder {
 public:
  LaneFinder(const ExplanationReport& report, TimelineFrame& frame)
      : named_(named_threads(report.explanation)), frame_(frame) {
    for (const ObservedRun* run : {report.passing, report.failing})
      if (run) add(run->trace);
  }

  void operator()() {
    share_lanes();
    size_t room = most_lanes;
    for (const Known& one : all_)
      if (contains(named_, one.name)) room -= std::min<size_t>(room, 1);
    for (const Known& one : all_) add_lane(one, room);
  }

 private:
  struct Known {
    std::string name, kind, role;
  };

  void add(const Trace& trace) {
    const ThreadRoles roles(trace);
    for (uint32_t i = 0; i < trace.threads.size(); ++i) {
      const std::string& name = trace.threads[i].name.text;
      if (!seen_.insert(name).second) continue;
      all_.push_back({name, roles.kind_of(i), roles.shared_by(i)});
      if (!contains(named_, name)) ++members_[roles.kind_of(i)];
    }
  }

  void share_lanes() {
    for (const Known& one : all_) {
      const size_t members = members_[one.kind];
      if (members <= most_of_one_kind || contains(named_, one.name)) continue;
      std::string& lane = shared_by_kind_[one.kind];
      if (lane.empty()) lane = fmt::format("{} x {}", one.role, members);
      frame_.shared[one.name] = lane;
    }
  }

  void add_lane(const Known& one, size_t& room) {
    const bool must = contains(named_, one.name);
    const std::string& lane = frame_.lane_of(one.name);
    if (contains(frame_.lanes, lane)) return;
    if (!must && room == 0) {
      ++frame_.threads_left_out;
      return;
    }
    frame_.lanes.push_back(lane);
    if (!must) --room;
    const bool is_alone = lane == one.name && !one.name.starts_with(one.role);
    if (is_alone) frame_.roles[lane] = one.role + number_in(one);
  }

  // Of several of a kind.
  std::string number_in(const Known& one) const {
    const auto same = std::ranges::count(all_, one.kind, &Known::kind);
    const size_t number = one.name.rfind('#');
    return same < 2 || number == std::string::npos ? "" : " " + one.name.substr(number);
  }

  const std::vector<std::string> named_;
  TimelineFrame& frame_;
  std::vector<Known> all_;
  std::set<std::string> seen_;
  std::map<std::string, size_t> members_;              // by kind, without those that are named
  std::map<std::string, std::string> shared_by_kind_;  // their lane
};

std::vector<Duration> times_of_pair(const ExplanationReport& report) {
  std::vector<Duration> times;
  const FlippedPair& pair = *report.explanation.pair;
  for (const auto& time : {pair.first.passing, pair.second.passing, pair.second.failing})
    if (time) times.push_back(*time);
  return times;
}

}  // namespace

const std::string& TimelineFrame::lane_of(const std::string& thread) const {
  const auto found = shared.find(thread);
  return found == shared.end() ? thread : found->second;
}

TimelineFrame whole_frame(const ExplanationReport& report) {
  TimelineFrame frame;
  frame.to = std::max({end_of(report.passing), end_of(report.failing), Duration(1)});
  LaneFinder(report, frame)();
  return frame;
}

TimelineFrame frame_around_pair(const ExplanationReport& report, const TimelineFrame& whole) {
  if (!report.explanation.pair) return whole;
  const std::vector<Duration> times = times_of_pair(report);
  const auto [low, high] = std::ranges::minmax_element(times);
  const Duration margin = std::max<Duration>((*high - *low) / 3, Duration(50));
  TimelineFrame frame = whole;
  frame.from = std::max(whole.from, *low - margin);
  frame.to = std::min(whole.to, *high + margin);
  return (frame.to - frame.from) * 2 > whole.to - whole.from ? whole : frame;
}

double axis_step(double length) {
  if (!(length > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(length / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (length / (factor * power) <= 8) return factor * power;
  return 10 * power;
}

}  // namespace unflake
