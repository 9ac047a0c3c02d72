#include "search/repair/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/happens_before.h"
#include "trace/names.h"
#include "util/paths.h"

namespace unflake {
namespace {

constexpr size_t most_watched_lines = 400;  // in one run: every visit costs some microseconds

bool names_end_of(const std::string& path, const std::string& end) {
  return path == end || path.ends_with("/" + end);
}

// As sites name it: what is short for one of them is short for a line.
std::string short_file(const Trace& trace, const std::string& path) {
  for (const TracedSite& site : trace.sites)
    if (!site.name.file.empty() && names_end_of(path, site.name.file)) return site.name.file;
  for (const TracedFunction& function : trace.functions)
    if (!function.file.empty() && names_end_of(path, function.file)) return function.file;
  return base_name(path);
}

std::string image_name(const Trace& trace, uint32_t image) {
  const uint32_t own = trace.processes.empty() ? no_index : trace.processes.front().executable;
  if (image == own || image >= trace.images.size()) return "";
  return base_name(trace.images[image].path);
}

// Functions by file of an image, from stacks.
struct CodeSeen {
  using File = std::pair<std::string, std::string>;
  std::map<File, std::set<std::string>> functions;
  std::map<File, std::string> paths;

  void add(const Trace& trace, const TracedStack& stack, const std::set<std::string>& files) {
    for (const TracedFrame& frame : stack.frames)
      for (const Frame& source : frame.source) {
        if (!is_own(frame, source) || !files.contains(source.file)) continue;
        const File file{image_name(trace, frame.image), short_file(trace, source.file)};
        functions[file].insert(source.function);
        paths.try_emplace(file, source.file);
      }
  }
  void add_executed(const Trace& trace) {
    for (const TracedFunction& function : trace.functions)
      if (!function.file.empty())
        functions[{image_name(trace, function.image), function.file}].insert(function.name);
  }
};

bool is_late(const Trace& trace, uint32_t thread) {
  return std::ranges::any_of(trace.calls, [&](const TracedCall& call) {
    return call.is_intervention && call.thread == thread;
  });
}

}  // namespace

std::set<std::string> project_files(const Trace& trace) {
  std::set<std::string> files;
  const auto add = [&](const TracedStack& stack) {
    for (const TracedFrame& frame : stack.frames)
      if (frame.first_project < frame.source.size())
        files.insert(frame.source[frame.first_project].file);
  };
  for (const TracedStack& stack : trace.stacks) add(stack);
  for (const TracedFailure& failure : trace.failures) add(failure.stack);
  return files;
}

RepairLines::RepairLines(const std::vector<const Trace*>& seen, const LinesOf& lines) {
  CodeSeen first, others;
  for (const Trace* trace : seen) {
    const std::set<std::string> files = project_files(*trace);
    for (const TracedFailure& failure : trace->failures) first.add(*trace, failure.stack, files);
    for (const TracedCall& call : trace->calls)
      if (call.stack < trace->stacks.size())
        (is_late(*trace, call.thread) ? first : others)
            .add(*trace, trace->stacks[call.stack], files);
    others.add_executed(*trace);
  }
  for (const CodeSeen* part : {&first, &others})
    for (const auto& [place, functions] : part->functions)
      executed_.insert(functions.begin(), functions.end());
  for (const Trace* trace : seen)
    for (const TracedFunction& function : trace->functions) executed_.insert(function.name);
  for (const CodeSeen* part : {&first, &others}) {
    std::vector<File> files;
    for (const auto& [place, functions] : part->functions)
      files.push_back(file_of(place.first, place.second, lines, functions));
    add_files(std::move(files));
    paths_.insert(part->paths.begin(), part->paths.end());
  }
}

// Large files must not take the places of small ones, whatever they are called.
void RepairLines::add_files(std::vector<File> files) {
  std::ranges::stable_sort(files, {}, [](const File& file) { return file.lines.size(); });
  for (size_t i = 0; i < files.size(); ++i) {
    const size_t share = (most_watched_lines - lines_.size()) / (files.size() - i);
    for (size_t line = 0; line < std::min(share, files[i].lines.size()); ++line)
      add_line(files[i], files[i].lines[line]);
  }
}

namespace {

SiteName site_of(const std::string& image, const std::string& file, int line) {
  SiteName site;
  site.image = image;
  site.file = file;
  site.line = line;
  return site;
}

}  // namespace

void RepairLines::add_line(const File& file, const CodeLine& line) {
  lines_.try_emplace(site_of(file.image, file.name, line.line), line.function);
}

RepairLines::File RepairLines::file_of(const std::string& image, const std::string& name,
                                       const LinesOf& lines,
                                       const std::set<std::string>& functions) {
  const auto is_executed = [&](const std::string& one) { return executed_.contains(one); };
  File file{image, name, {}};
  for (CodeLine& line : lines(image, name)) {
    std::set<std::string>& known = functions_[site_of(image, name, line.line)];
    known.insert(line.function);
    known.insert(line.functions.begin(), line.functions.end());
    if (!functions.contains(line.function) && std::ranges::none_of(line.inlined_into, is_executed))
      continue;
    if (std::ranges::none_of(line.hidden_in, is_executed)) file.lines.push_back(std::move(line));
  }
  return file;
}

void RepairLines::watch_in(Plan& plan) const {
  std::set<std::string> entered;  // an entry is the same instruction as some line
  std::set<SiteName> named;
  for (const Intervention& one : plan.interventions) {
    if (one.site.file.empty() && one.site.api.empty()) entered.insert(one.site.function);
    SiteName plain = one.site;
    plain.function.clear();
    named.insert(plain);
  }
  for (const auto& [site, function] : lines_) {
    if (named.contains(site) || entered.contains(function)) continue;
    Intervention watch;
    watch.action = Intervention::Action::watch;
    watch.site = site;
    plan.interventions.push_back(watch);
  }
}

bool RepairLines::leave_out(const std::string& complaint) {
  auto first = lines_.end();
  size_t first_at = std::string::npos;
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    const std::string name = to_string(line->first);
    const size_t at = complaint.find(name), end = at + name.size();
    if (at >= first_at) continue;
    if (end < complaint.size() && complaint[end] >= '0' && complaint[end] <= '9') continue;
    first = line;
    first_at = at;
  }
  if (first == lines_.end()) return false;
  lines_.erase(first);
  return true;
}

bool RepairLines::is_shared(const SiteName& line) const {
  const auto found = functions_.find(line);
  return found != functions_.end() && found->second.size() > 1;
}

bool RepairLines::is_line_of(const SiteName& line, const std::string& function) const {
  const auto found = functions_.find(line);
  return found != functions_.end() && found->second.contains(function);
}

const std::string& RepairLines::function_at(const SiteName& line) const {
  static const std::string unknown;
  SiteName plain = line;
  plain.function.clear();
  plain.api.clear();
  plain.nth = 1;
  const auto found = lines_.find(plain);
  return found == lines_.end() ? unknown : found->second;
}

std::string RepairLines::path_of(const SiteName& line) const {
  const auto found = paths_.find({line.image, line.file});
  return found == paths_.end() ? line.file : found->second;
}

std::vector<SiteName> RepairLines::of_function(const std::string& function) const {
  std::vector<SiteName> all;
  for (const auto& [site, name] : lines_)
    if (name == function) all.push_back(site);
  return all;
}

uint32_t thread_named(const Trace& trace, const std::string& name, size_t namesake) {
  uint32_t found = no_index;
  for (uint32_t i = 0; i < trace.threads.size(); ++i) {
    if (trace.threads[i].name.text != name) continue;
    found = i;
    if (namesake-- == 0) break;
  }
  return found;
}

size_t namesake_number(const Trace& trace, uint32_t thread) {
  const auto end = trace.threads.begin() + thread;
  return static_cast<size_t>(
      std::count_if(trace.threads.begin(), end, [&](const TracedThread& other) {
        return other.name.text == trace.threads[thread].name.text;
      }));
}

uint32_t thread_like(const Trace& trace, const std::string& name, size_t namesake) {
  const uint32_t same = thread_named(trace, name, namesake);
  if (same != no_index) return same;
  for (uint32_t i = 0; i < trace.threads.size(); ++i)
    if (thread_class_of(trace.threads[i].name.text) == thread_class_of(name)) return i;
  return no_index;
}

namespace {

// A program that is executed in place of another has threads of its own, and the first one goes on.
uint32_t thread_after(const Trace& trace, uint32_t thread) {
  const uint32_t own = trace.threads[thread].process;
  if (own >= trace.processes.size()) return no_index;
  for (uint32_t i = thread + 1; i < trace.threads.size(); ++i) {
    const uint32_t process = trace.threads[i].process;
    if (process != own && process < trace.processes.size() && trace.threads[i].parent == no_index &&
        trace.threads[i].tid == trace.threads[thread].tid &&
        trace.processes[process].pid == trace.processes[own].pid)
      return i;
  }
  return no_index;
}

using SpotsOfSites = std::map<uint32_t, CodeSpot>;  // looked up once: a trace has many calls

ThreadStep step_of(const Trace& trace, size_t number, const RepairLines& lines,
                   SpotsOfSites& spots) {
  const TracedCall& call = trace.calls[number];
  const TracedThread& self = trace.threads[call.thread];
  const SiteName& site = trace.sites[call.site].name;
  ThreadStep step;
  step.site = site;
  step.thread = self.name;
  step.executable = executable_of(trace, self);
  const auto [spot, is_new] = spots.try_emplace(call.site);
  if (is_new) spot->second = place_of(trace, site);
  step.spot = spot->second;
  step.at = call.enter;
  step.call = number;
  step.process = self.process;
  const Frame* frame =
      call.stack < trace.stacks.size() ? frame_at(trace.stacks[call.stack], site) : nullptr;
  if (frame) step.spot = {frame->file, frame->line, frame->function};
  if (step.spot.file == site.file) step.spot.file = lines.path_of(site);
  // A line may be of several functions, such as one that starts a thread with a lambda: the stack
  // knows better.
  const std::string& function = lines.function_at(site);
  if (!function.empty() && (!frame || frame->function.empty())) step.spot.function = function;
  return step;
}

}  // namespace

std::vector<ThreadStep> steps_of(const Trace& trace, uint32_t thread, const RepairLines& lines,
                                 bool whole_class) {
  std::vector<ThreadStep> steps;
  if (thread >= trace.threads.size()) return steps;
  const TracedThread& self = trace.threads[thread];
  const auto is_meant = [&](const TracedCall& call) {
    if (call.thread >= trace.threads.size() || call.site >= trace.sites.size()) return false;
    if (call.is_intervention) return false;
    return whole_class ? trace.threads[call.thread].name.thread_class == self.name.thread_class
                       : call.thread == thread;
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < trace.calls.size(); ++i)
    if (is_meant(trace.calls[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return trace.calls[i].enter; });
  std::map<uint32_t, uint64_t> visits;
  SpotsOfSites spots;
  for (const size_t i : order) {
    const uint64_t visit = ++visits[trace.calls[i].site];
    if (trace.calls[i].thread != thread) continue;
    steps.push_back(step_of(trace, i, lines, spots));
    steps.back().visit = visit;
  }
  if (const uint32_t next = thread_after(trace, thread); next != no_index)
    for (ThreadStep& step : steps_of(trace, next, lines, false)) steps.push_back(std::move(step));
  return steps;
}

std::vector<ThreadStep> steps_without_lock(const Trace& trace, std::vector<ThreadStep> steps) {
  std::set<uint64_t> held;
  std::vector<ThreadStep> free;
  const ThreadStep* waited = nullptr;  // just before
  for (ThreadStep& step : steps) {
    const TracedCall& call = trace.calls[step.call];
    const TracedSite& site = trace.sites[call.site];
    if (waited != nullptr && !held.empty())
      step.woken_from = ThreadStep::Wait{waited->site, waited->visit};
    if (held.empty() || step.woken_from) free.push_back(step);
    waited = waits_for_signal(site) ? &step : nullptr;
    if (!is_lock(site)) continue;
    if (is_unlock(site))
      held.erase(call.object);
    else if (call.result == 0 && !call.timed_out && !call.unfinished)
      held.insert(call.object);
  }
  return free;
}

namespace {

std::string call_words(const Trace& trace, const SiteName& site, const TracedCall& call,
                       const Wrappers& wrappers) {
  if (site.api.empty() || call.stack >= trace.stacks.size()) return to_string(site);
  const auto frames = frames_above(trace.stacks[call.stack], wrappers);
  if (frames.empty()) return to_string(site);
  return fmt::format("{} at {}:{}", site.api, base_name(frames.front()->file),
                     frames.front()->line);
}

}  // namespace

std::string step_words(const Trace& trace, const ThreadStep& step) {
  if (step.is_line()) return to_string(step.site);
  const TracedCall& itself = trace.calls[step.call];
  const Wrappers wrappers({&trace});
  const std::string words = call_words(trace, step.site, itself, wrappers);
  size_t times = 0, which = 0;
  for (const TracedCall& call : trace.calls) {
    const bool is_here =
        !call.is_intervention && call.thread == itself.thread && call.site == itself.site;
    if (!is_here || call_words(trace, step.site, call, wrappers) != words) continue;
    ++times;
    if (&call == &itself) which = times;
  }
  return times < 2 ? words : fmt::format("{} (time {} of {})", words, which, times);
}

RepairPlace place_of(const ThreadStep& step) {
  return {step.site, step.spot, step.thread.text};
}

}  // namespace unflake
