#include "trace/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "symbols/project_code.h"
#include "trace/same_line.h"
#include "util/base_name.h"

namespace unflake {
namespace {

bool is_at(const Frame& frame, const SiteName& site) {
  return frame.line == site.line && !site.file.empty() && frame.file.ends_with(site.file);
}

const Frame* frame_at(const TracedStack& stack, const SiteName& site) {
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (is_at(source, site)) return &source;
  return nullptr;
}

const Frame* frame_of_function(const TracedStack& stack, const CodeSpot& function) {
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (!source.function.empty() && source.function == function.function &&
          source.file == function.file)
        return &source;
  return nullptr;
}

// Whatever the system's libraries tell of themselves, no check of a test stands there.
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

// The event's own stack is the surest source for its file.
CodeSpot place_of(const Trace& trace, const TracedEvent& event, const SiteName& site) {
  if (event.stack < trace.stacks.size())
    if (const Frame* frame = frame_at(trace.stacks[event.stack], site))
      return {frame->file, frame->line, frame->function};
  return place_of(trace, site);
}

bool is_own(const Trace& trace, const TracedFrame& frame, const Frame& source) {
  const bool is_project = frame.image < trace.images.size() && trace.images[frame.image].is_project;
  return is_project && source.line > 0 && !source.file.empty() && !source.file.starts_with("/usr/");
}

// The next line of the project's own further up.
const Frame* frame_above(const Trace& trace, const TracedStack& stack, const CodeSpot& own) {
  bool passed = false;
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source) {
      const bool is_here = source.file == own.file && source.line == own.line;
      if (passed && !is_here && is_own(trace, frame, source)) return &source;
      passed = passed || is_here;
    }
  return nullptr;
}

std::optional<CodeSpot> caller_of(const EventOrder& order, const Trace& trace,
                                  const TracedEvent& event, const CodeSpot& own) {
  if (event.stack >= trace.stacks.size()) return std::nullopt;
  const TracedStack& stack = trace.stacks[event.stack];
  const TracedFailure* failure = main_failure(*order.failing);
  const Frame* frame =
      failure ? frame_of_function(stack, place_of(*order.failing, *failure)) : nullptr;
  if (!frame) frame = frame_above(trace, stack, own);
  if (!frame || (frame->line == own.line && frame->file == own.file)) return std::nullopt;
  return CodeSpot{frame->file, frame->line, frame->function};
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

void describe_call(Moment& moment, const EventOrder& order, const Point& point) {
  const TracedSite* site = order.site_of(point);
  if (!site) return;
  const Trace& trace = point.passing ? *order.passing : *order.failing;
  const TracedEvent& event = point.passing ? *point.passing : *point.failing;
  moment.api = site->name.api;
  moment.place = place_of(trace, event, site->name);
  moment.caller = caller_of(order, trace, event, moment.place);
}

}  // namespace

std::string location_of(const Frame& frame) {
  if (frame.file.empty()) return frame.function;
  const std::filesystem::path path(frame.file);
  const std::string file = (path.parent_path().filename() / path.filename()).string();
  const std::string place = fmt::format("{}:{}", file, frame.line);
  return frame.function.empty() ? place : place + " in " + frame.function;
}

std::vector<const Frame*> callers_of(const Trace& trace, const TracedStack& stack,
                                     const SiteName& site) {
  std::vector<const Frame*> callers;
  bool passed = false;
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source) {
      if (passed && is_own(trace, frame, source)) callers.push_back(&source);
      passed = passed || is_at(source, site);
    }
  return callers;
}

std::string short_place(const CodeSpot& place) {
  if (place.file.empty()) return place.function;
  return place.line > 0 ? fmt::format("{}:{}", base_name(place.file), place.line)
                        : base_name(place.file);
}

const TracedFailure* main_failure(const Trace& trace) {
  const auto found = std::ranges::find_if(
      trace.failures, [](const TracedFailure& one) { return one.kind != "thrown before"; });
  return found == trace.failures.end() ? nullptr : &*found;
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

// A program may be called like one of its functions.
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

std::string name_of_thread(const Trace& trace, uint32_t thread) {
  return thread < trace.threads.size() ? trace.threads[thread].name.text : "a thread";
}

// A thread is named after the place that started it.
std::string started_by(const Trace& trace, uint32_t thread) {
  if (thread >= trace.threads.size()) return "";
  const TracedThread& one = trace.threads[thread];
  if (one.parent >= trace.threads.size()) return "";
  const std::string& name = one.name.text;
  const std::string place = name.substr(0, std::min(name.find('#'), name.find('~')));
  const std::string& parent = trace.threads[one.parent].name.text;
  return place == name ? parent : fmt::format("{} at {}", parent, place);
}

CodeSpot place_of(const Trace& trace, const SiteName& site) {
  for (const TracedStack& stack : trace.stacks)
    if (const Frame* frame = frame_at(stack, site))
      return {frame->file, frame->line, frame->function};
  return {site.file, site.line, site.function};
}

Moment moment_of(const EventOrder& order, const Point& point) {
  const OrderedThread& thread = order.threads[point.thread];
  Moment moment;
  moment.what = what_of(point.kind);
  moment.thread = thread.name;
  moment.started_by = thread.passing != no_index ? started_by(*order.passing, thread.passing)
                                                 : started_by(*order.failing, thread.failing);
  moment.passing = point.passing_from;
  moment.failing = point.failing_at;
  if (point.kind == Point::Kind::failure) {
    moment.place = place_of(*order.failing, *main_failure(*order.failing));
    moment.passing_is_bound = true;
  }
  describe_call(moment, order, point);
  return moment;
}

}  // namespace unflake
