#include "explain/call_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "protocol/agent_protocol.h"
#include "symbols/project_code.h"
#include "trace/happens_before.h"
#include "trace/names.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

const Frame* frame_of_function(const TracedStack& stack, const CodeSpot& function) {
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (!source.function.empty() && source.function == function.function &&
          source.file == function.file)
        return &source;
  return nullptr;
}

// Whatever the system's libraries say about themselves, no check of a test is there.
bool is_system(const Trace& trace, const TracedFrame& frame) {
  return frame.image < trace.images.size() && !trace.images[frame.image].is_project;
}

CodeSpot place_of(const Trace& trace, const TracedFailure& failure) {
  CodeSpot place{failure.file, failure.line, ""};
  for (const TracedFrame& frame : failure.stack.frames)
    for (const Frame& source : frame.source) {
      if (is_system(trace, frame)) continue;
      if (source.file.empty() || source.function.empty()) continue;
      if (failure.file.empty() || is_same_line(source, failure))
        return {source.file, source.line, source.function};
    }
  return place;
}

// The call's own stack is the most reliable source for its file.
CodeSpot place_on(const TracedStack& stack, const SiteName& site, const Wrappers& wrappers,
                  const std::vector<const Frame*>& frames) {
  const Frame* own = frame_at(stack, site);
  if (!frames.empty() && (!own || wrappers.contains(*own))) own = frames.front();
  if (!own) return {};
  if (!site.api.empty() || frames.empty()) return {own->file, own->line, own->function};
  // At a line, whatever was inlined there happens. Its frame may not begin with it yet.
  const bool is_there =
      site.line <= 0 || std::ranges::any_of(own_frames(stack), [&](const Frame* frame) {
        return is_at(*frame, site);
      });
  const int line = is_there ? frames.front()->line : site.line;
  return {frames.front()->file, line, frames.front()->function};
}

// Where the call happens, seen from outside of wrappers, and the project's next line further up.
void name_places(Moment& moment, const CallOrder& order, const Trace& trace,
                 const TracedCall& call) {
  const SiteName& site = trace.sites[call.site].name;
  moment.place = place_of(trace, site);
  if (call.stack >= trace.stacks.size()) return;
  const TracedStack& stack = trace.stacks[call.stack];
  const auto frames = frames_above(stack, order.wrappers);
  const CodeSpot place = place_on(stack, site, order.wrappers, frames);
  if (place.line <= 0) return;
  moment.place = place;
  bool passed = std::ranges::none_of(frames, [&](const Frame* frame) {
    return frame->file == place.file && frame->line == place.line;
  });
  for (const Frame* frame : frames) {
    const bool is_here = frame->file == place.file && frame->line == place.line;
    if (passed && !is_here) {
      moment.caller = CodeSpot{frame->file, frame->line, frame->function};
      return;
    }
    passed = passed || is_here;
  }
}

Moment::What what_of(Point::Kind kind) {
  switch (kind) {
    case Point::Kind::begin:
      return Moment::What::call;
    case Point::Kind::end:
      return Moment::What::return_from_call;
    case Point::Kind::thread_end:
      return Moment::What::thread_end;
    case Point::Kind::failure:
      return Moment::What::failure;
  }
  return Moment::What::call;
}

void describe_call(Moment& moment, const CallOrder& order, const Point& point) {
  const TracedSite* site = order.site_of(point);
  if (!site) return;
  const Trace& trace = point.passing ? *order.passing : *order.failing;
  const TracedCall& call = point.passing ? *point.passing : *point.failing;
  moment.api = site->name.api;
  name_places(moment, order, trace, call);
}

}  // namespace

std::optional<CodeSpot> line_in_failing_function(const CallOrder& order, const Point& point) {
  const TracedFailure* failure = main_failure(*order.failing);
  const Trace& trace = point.passing ? *order.passing : *order.failing;
  const TracedCall* call = point.passing ? point.passing : point.failing;
  if (!failure || !call || call->stack >= trace.stacks.size()) return std::nullopt;
  const Frame* frame =
      frame_of_function(trace.stacks[call->stack], place_of(*order.failing, *failure));
  if (!frame || frame->line <= 0) return std::nullopt;
  return CodeSpot{frame->file, frame->line, frame->function};
}

std::string short_place(const CodeSpot& place) {
  if (place.file.empty()) return place.function;
  return place.line > 0 ? fmt::format("{}:{}", base_name(place.file), place.line)
                        : base_name(place.file);
}

std::string unseen_failing_function(const Trace& trace) {
  const TracedFailure* failure = main_failure(trace);
  if (!failure) return "";
  for (const TracedFrame& frame : failure->stack.frames) {
    if (is_system(trace, frame) || frame.source.empty()) continue;
    const Frame& own = frame.source.back();
    if (is_system_function(own.function) || is_framework_function(own.function)) continue;
    return frame.first_project == no_index && own.file.empty() ? own.function : "";
  }
  return "";
}

bool has_lines_of(const Trace& trace, const std::string& file) {
  if (file.empty()) return false;
  return std::ranges::any_of(trace.stacks, [&](const TracedStack& stack) {
    return std::ranges::any_of(own_frames(stack), [&](const Frame* frame) {
      return frame->line > 0 && base_name(frame->file) == base_name(file);
    });
  });
}

// A program may have the name of one of its functions.
bool has_name(const Trace& trace, const CodeSpot& place) {
  if (place.line > 0) return true;
  const bool is_image = std::ranges::any_of(trace.images, [&](const TracedImage& image) {
    return base_name(image.path) == place.function;
  });
  if (!is_image) return !place.function.empty();
  return std::ranges::any_of(trace.stacks, [&](const TracedStack& stack) {
    return frame_of_function(stack, place) != nullptr;
  });
}

Moment moment_of(const CallOrder& order, const Point& point) {
  const OrderedThread& thread = order.threads[point.thread];
  Moment moment;
  moment.what = what_of(point.kind);
  moment.thread = thread.name;
  const bool is_in_passing = thread.passing != no_index;
  const Trace& seen = is_in_passing ? *order.passing : *order.failing;
  const uint32_t number = is_in_passing ? thread.passing : thread.failing;
  moment.started_by = started_by(seen, number);
  moment.role = role_of(seen, number);
  moment.passing = point.passing_from;
  moment.failing = point.failing_at;
  if (point.kind == Point::Kind::failure) {
    moment.place = place_of(*order.failing, *main_failure(*order.failing));
    moment.passing_is_bound = true;
  }
  describe_call(moment, order, point);
  return moment;
}

namespace {

constexpr uint16_t timed_wait = protocol::api_wait | protocol::api_timed;

// All waits of one thread at one site that end before the second point, and after the delay began.
struct Waits {
  const Point* first = nullptr;
  int times = 0;
  std::optional<Duration> passing;
  std::optional<Duration> passing_begin;
  Duration failing{};
  bool ran_out_passing = false, ran_out_failing = false;
};

bool is_timed(const CallOrder& order, const Point& point) {
  const TracedCall* call = point.failing ? point.failing : point.passing;
  return point.kind == Point::Kind::begin && (order.traits_of(point) & timed_wait) == timed_wait &&
         call->value >= 0;
}

// In a run under the plan a wait that was over before anything was late kept nobody, unless it went
// on beyond the first point when the test passed: then its thread came there too late by itself.
bool stands_between(const CallOrder& order, const PointPair& pair, const Point& wait) {
  const Point &first = order.points[pair.first], &second = order.points[pair.second];
  if (!wait.failing || wait.failing->enter >= *second.failing_at) return false;
  if (wait.failing == second.failing && second.kind != Point::Kind::end) return false;
  const auto& from = order.threads[first.thread].late_from;
  const bool went_on =
      wait.passing && first.passing_from && wait.passing->exit > *first.passing_from;
  return order.plan_is_passing || !from || wait.failing->exit > *from || went_on;
}

void add(Waits& waits, const Point& wait) {
  if (!waits.first) waits.first = &wait;
  ++waits.times;
  waits.failing += wait.failing->exit - wait.failing->enter;
  waits.ran_out_failing = waits.ran_out_failing || wait.failing->timed_out;
  if (!wait.passing) return;
  waits.passing = waits.passing.value_or(Duration{}) + (wait.passing->exit - wait.passing->enter);
  waits.passing_begin =
      std::min(waits.passing_begin.value_or(wait.passing->enter), wait.passing->enter);
  waits.ran_out_passing = waits.ran_out_passing || wait.passing->timed_out;
}

// Nobody relies on the beginning of a sleep.
std::optional<Duration> usually_over(const CallOrder& order, const Point& critical) {
  const bool sleeps = critical.kind == Point::Kind::begin && critical.passing &&
                      order.group_traits_of(critical) & protocol::group_sleeps;
  return sleeps ? critical.passing->exit : critical.passing_from;
}

CoveringWait described(const CallOrder& order, const Waits& waits, const Point& critical) {
  CoveringWait wait;
  wait.moment = moment_of(order, *waits.first);
  wait.site = order.failing->sites[waits.first->failing->site].name;
  if (waits.first->failing->thread < order.failing->threads.size())
    wait.executable =
        executable_of(*order.failing, order.failing->threads[waits.first->failing->thread]);
  wait.is_sleep = order.group_traits_of(*waits.first) & protocol::group_sleeps;
  wait.times = waits.times;
  wait.asked =
      std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(waits.first->failing->value));
  wait.passing = waits.passing;
  wait.failing = waits.failing;
  wait.ran_out_passing = waits.ran_out_passing;
  wait.ran_out_failing = waits.ran_out_failing;
  const auto over = usually_over(order, critical);
  if (waits.passing_begin && over && *over > *waits.passing_begin)
    wait.needed = *over - *waits.passing_begin;
  return wait;
}

}  // namespace

namespace {

// The last one of a run that was there before the time; a script sleeps by a program of that name.
const TracedThread* sleeper_before(const Trace& trace, Duration end) {
  const TracedThread* last = nullptr;
  for (const TracedThread& thread : trace.threads)
    if (thread.process < trace.processes.size() && thread.parent == no_index &&
        base_name(trace.processes[thread.process].name) == "sleep" && thread.started < end &&
        (!last || thread.started > last->started))
      last = &thread;
  return last;
}

std::optional<CoveringWait> sleeping_process(const CallOrder& order, const PointPair& pair) {
  const Point &first = order.points[pair.first], &second = order.points[pair.second];
  if (!first.passing_from || !second.passing_to || !second.failing_at) return std::nullopt;
  const TracedThread* usual = sleeper_before(*order.passing, *second.passing_to);
  const TracedThread* failing = sleeper_before(*order.failing, *second.failing_at);
  if (!usual || !failing) return std::nullopt;
  CoveringWait wait;
  wait.is_sleep = true;
  wait.moment.thread = failing->name.text;
  wait.moment.place.function = "sleep";
  wait.moment.api = "sleep";
  wait.moment.passing = usual->started;
  wait.moment.failing = failing->started;
  wait.passing = *second.passing_to - usual->started;
  wait.failing = *second.failing_at - failing->started;
  if (*first.passing_from > usual->started) wait.needed = *first.passing_from - usual->started;
  return wait;
}

}  // namespace

std::optional<CoveringWait> covering_wait(const CallOrder& order, const PointPair& pair) {
  const Point &first = order.points[pair.first], &second = order.points[pair.second];
  std::map<const TracedSite*, Waits> sites;
  std::vector<const TracedSite*> seen;
  for (const Point& point : order.points) {
    if (point.thread != second.thread || !is_timed(order, point)) continue;
    if (!stands_between(order, pair, point)) continue;
    const TracedSite* site = &order.failing->sites[point.failing->site];
    if (!sites.contains(site)) seen.push_back(site);
    add(sites[site], point);
  }
  const auto longest = std::ranges::max_element(
      seen, {}, [&](const TracedSite* site) { return sites.at(site).failing; });
  if (longest == seen.end()) return sleeping_process(order, pair);
  return described(order, sites.at(*longest), first);
}

}  // namespace unflake
