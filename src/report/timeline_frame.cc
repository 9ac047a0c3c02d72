#include <algorithm>
#include <cmath>

#include "report/timeline_svg.h"

namespace unflake {
namespace {

constexpr size_t most_lanes = 24;

Duration end_of(const ObservedRun* run) {
  Duration end{};
  if (!run) return end;
  for (const TracedEvent& event : run->trace.events) end = std::max(end, event.exit);
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

std::vector<std::string> all_threads(const ExplanationReport& report) {
  std::vector<std::string> names;
  for (const ObservedRun* run : {report.passing, report.failing})
    if (run)
      for (const TracedThread& thread : run->trace.threads)
        if (names.size() < 10 * most_lanes && !contains(names, thread.name.text))
          names.push_back(thread.name.text);
  return names;
}

std::vector<Duration> times_of_pair(const ExplanationReport& report) {
  std::vector<Duration> times;
  const FlippedPair& pair = *report.explanation.pair;
  for (const auto& time : {pair.first.passing, pair.second.passing, pair.second.failing})
    if (time) times.push_back(*time);
  return times;
}

}  // namespace

TimelineFrame whole_frame(const ExplanationReport& report) {
  TimelineFrame frame;
  frame.to = std::max({end_of(report.passing), end_of(report.failing), Duration(1)});
  const std::vector<std::string> named = named_threads(report.explanation);
  const std::vector<std::string> all = all_threads(report);
  size_t room = most_lanes;
  for (const std::string& name : all) room -= std::min<size_t>(room, contains(named, name));
  for (const std::string& name : all) {
    const bool must = contains(named, name);
    if (must || room > 0) frame.lanes.push_back(name);
    if (!must && room > 0) --room;
  }
  frame.threads_left_out = all.size() - frame.lanes.size();
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
