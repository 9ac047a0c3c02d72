#include "trace/trace_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace unflake {

bool is_at(const Frame& frame, const SiteName& site) {
  return frame.line == site.line && !site.file.empty() && frame.file.ends_with(site.file);
}

bool is_own(const Trace& trace, const TracedFrame& frame, const Frame& source) {
  const bool is_project = frame.image < trace.images.size() && trace.images[frame.image].is_project;
  return is_project && source.line > 0 && !source.file.empty() && !source.file.starts_with("/usr/");
}

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

const TracedFailure* main_failure(const Trace& trace) {
  const auto found = std::ranges::find_if(
      trace.failures, [](const TracedFailure& one) { return one.kind != "thrown before"; });
  return found == trace.failures.end() ? nullptr : &*found;
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

const Frame* frame_at(const TracedStack& stack, const SiteName& site) {
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (is_at(source, site)) return &source;
  return nullptr;
}

CodeSpot place_of(const Trace& trace, const SiteName& site) {
  for (const TracedStack& stack : trace.stacks)
    if (const Frame* frame = frame_at(stack, site))
      return {frame->file, frame->line, frame->function};
  return {site.file, site.line, site.function};
}

}  // namespace unflake
