#include "search/reproduce/failure_point.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/paths.h"

namespace unflake {
namespace {

// Outermost first, inlined functions too.
std::vector<std::string> functions_of(const TracedStack& stack) {
  std::vector<std::string> functions;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame)
    for (auto source = frame->source.rbegin(); source != frame->source.rend(); ++source)
      functions.push_back(source->function);
  return functions;
}

double similarity(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || b.empty()) return 0;
  const auto [end, _] = std::ranges::mismatch(a, b);
  return static_cast<double>(end - a.begin()) / static_cast<double>(std::max(a.size(), b.size()));
}

const TracedStack* stack_of(const Trace& trace, const TracedEvent& event) {
  return event.stack < trace.stacks.size() ? &trace.stacks[event.stack] : nullptr;
}

template <class Accepts>
bool has_frame(const Trace& trace, const TracedEvent& event, Accepts accepts) {
  const TracedStack* stack = stack_of(trace, event);
  if (stack == nullptr) return false;
  return std::ranges::any_of(stack->frames, [&](const TracedFrame& frame) {
    return std::ranges::any_of(frame.source, accepts);
  });
}

template <class Accepts>
const TracedEvent* last_event(const Trace& trace, Accepts accepts) {
  const TracedEvent* last = nullptr;
  for (const TracedEvent& event : trace.events)
    if (event.thread < trace.threads.size() && event.site < trace.sites.size() &&
        (last == nullptr || event.enter >= last->enter) && accepts(event))
      last = &event;
  return last;
}

const TracedEvent* most_alike(const Trace& trace, const TracedStack& wanted) {
  const auto functions = functions_of(wanted);
  std::vector<double> scores;
  for (const TracedStack& stack : trace.stacks)
    scores.push_back(similarity(functions_of(stack), functions));
  const TracedEvent* best = nullptr;
  double best_score = 0;
  for (const TracedEvent& event : trace.events) {
    if (event.stack >= scores.size() || event.thread >= trace.threads.size()) continue;
    const double score = scores[event.stack];
    if (score > best_score || (score == best_score && best && event.enter > best->enter)) {
      best_score = score;
      best = &event;
    }
  }
  return best_score >= 0.5 ? best : nullptr;
}

// A failure that some profiling run showed, whose stack helps to find its place in a passing run.
const TracedFailure* recorded_failure(const Profile& profile, const Wanted& wanted) {
  for (const ExperimentResult& run : profile.runs)
    if (run.trace && !run.trace->failures.empty() && wanted.matches(run.outcome))
      return &run.trace->failures.front();
  return nullptr;
}

}  // namespace

FailurePoint find_failure_point(const Trace& trace, const Wanted& wanted,
                                const TracedFailure* recorded) {
  if (wanted.failure && wanted.failure->line > 0) {
    const Failure& failure = *wanted.failure;
    const auto watched = [&](const TracedEvent& event) {
      const SiteName& site = trace.sites[event.site].name;
      return site.api.empty() && is_same_line(site, failure);
    };
    if (const TracedEvent* event = last_event(trace, watched))
      return {event->thread, event->enter,
              fmt::format("{} reaches {}:{}", trace.threads[event->thread].name.text,
                          base_name(failure.file), failure.line)};
    const auto from_line = [&](const TracedEvent& event) {
      return has_frame(trace, event,
                       [&](const Frame& frame) { return is_same_line(frame, failure); });
    };
    if (const TracedEvent* event = last_event(trace, from_line))
      return {event->thread, event->exit, "the last call from the failing line"};
    const auto from_function = [&](const TracedEvent& event) {
      return !failure.function.empty() && has_frame(trace, event, [&](const Frame& frame) {
        return frame.function == failure.function;
      });
    };
    if (const TracedEvent* event = last_event(trace, from_function))
      return {event->thread, event->exit, "the last call from the failing function"};
  }
  if (recorded != nullptr)
    if (const TracedEvent* event = most_alike(trace, recorded->stack))
      return {event->thread, event->exit, "the call whose stack is most like the failure's"};
  return {no_index, end_of(trace), "not known, so the whole test counts"};
}

FailurePoint find_failure_point(const Trace& trace, const Hunt& hunt) {
  const Wanted& wanted = hunt.options().wanted;
  return find_failure_point(trace, wanted, recorded_failure(hunt.profile(), wanted));
}

}  // namespace unflake
