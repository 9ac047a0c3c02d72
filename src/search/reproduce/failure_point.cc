#include "search/reproduce/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/names.h"
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

const TracedStack* stack_of(const Trace& trace, const TracedCall& call) {
  return call.stack < trace.stacks.size() ? &trace.stacks[call.stack] : nullptr;
}

template <class Accepts>
bool has_frame(const Trace& trace, const TracedCall& call, Accepts accepts) {
  const TracedStack* stack = stack_of(trace, call);
  if (stack == nullptr) return false;
  return std::ranges::any_of(stack->frames, [&](const TracedFrame& frame) {
    return std::ranges::any_of(frame.source, accepts);
  });
}

template <class Accepts>
const TracedCall* last_call(const Trace& trace, Accepts accepts) {
  const TracedCall* last = nullptr;
  for (const TracedCall& call : trace.calls)
    if (call.thread < trace.threads.size() && call.site < trace.sites.size() &&
        (last == nullptr || call.enter >= last->enter) && accepts(call))
      last = &call;
  return last;
}

const TracedCall* most_alike(const Trace& trace, const TracedStack& wanted) {
  const auto functions = functions_of(wanted);
  std::vector<double> scores;
  for (const TracedStack& stack : trace.stacks)
    scores.push_back(similarity(functions_of(stack), functions));
  const TracedCall* best = nullptr;
  double best_score = 0;
  for (const TracedCall& call : trace.calls) {
    if (call.stack >= scores.size() || call.thread >= trace.threads.size()) continue;
    const double score = scores[call.stack];
    if (score > best_score || (score == best_score && best && call.enter > best->enter)) {
      best_score = score;
      best = &call;
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
    const auto watched = [&](const TracedCall& call) {
      const SiteName& site = trace.sites[call.site].name;
      return site.api.empty() && is_same_line(site, failure);
    };
    if (const TracedCall* call = last_call(trace, watched))
      return {call->thread, call->enter,
              fmt::format("{} reaches {}:{}", told(trace.threads[call->thread].name),
                          base_name(failure.file), failure.line)};
    const auto from_line = [&](const TracedCall& call) {
      return has_frame(trace, call,
                       [&](const Frame& frame) { return is_same_line(frame, failure); });
    };
    if (const TracedCall* call = last_call(trace, from_line))
      return {call->thread, call->exit, "the last call from the failing line"};
    const auto from_function = [&](const TracedCall& call) {
      return !failure.function.empty() && has_frame(trace, call, [&](const Frame& frame) {
        return frame.function == failure.function;
      });
    };
    if (const TracedCall* call = last_call(trace, from_function))
      return {call->thread, call->exit, "the last call from the failing function"};
  }
  if (recorded != nullptr)
    if (const TracedCall* call = most_alike(trace, recorded->stack))
      return {call->thread, call->exit, "the call whose stack is most like the failure's"};
  return {no_index, end_of(trace), "not known, so the whole test counts"};
}

namespace {

uint32_t initial_thread(const Trace& trace) {
  const auto found = std::ranges::find(trace.threads, "main",
                                       [](const TracedThread& thread) { return thread.name.text; });
  return found == trace.threads.end() ? 0 : static_cast<uint32_t>(found - trace.threads.begin());
}

}  // namespace

void add_printed_failure(ExperimentResult& result) {
  const Outcome& outcome = result.outcome;
  if (!result.trace || result.trace->threads.empty() || outcome.failures.empty()) return;
  if (outcome.kind != OutcomeKind::fail || main_failure(*result.trace)) return;
  Wanted printed;
  printed.failure = outcome.failures.front();
  const FailurePoint point = find_failure_point(*result.trace, printed);
  TracedFailure failure;
  failure.kind = "printed";
  failure.thread = point.thread == no_index ? initial_thread(*result.trace) : point.thread;
  failure.at = point.at;
  failure.file = printed.failure->file;
  failure.line = printed.failure->line;
  failure.message = printed.failure->message;
  auto trace = std::make_shared<Trace>(*result.trace);
  trace->failures.push_back(std::move(failure));
  result.trace = std::move(trace);
}

std::optional<SiteName> line_of_printed_failure(const Failure& failure, Framework framework) {
  const bool has_own_checks = framework == Framework::command || framework == Framework::ctest;
  if (!has_own_checks || failure.line <= 0 || failure.kind != FailureKind::assertion)
    return std::nullopt;
  SiteName line;
  line.file = base_name(failure.file);
  line.line = failure.line;
  return line;
}

FailurePoint find_failure_point(const Trace& trace, const Hunt& hunt) {
  const Wanted& wanted = hunt.options().wanted;
  return find_failure_point(trace, wanted, recorded_failure(hunt.profile(), wanted));
}

}  // namespace unflake
