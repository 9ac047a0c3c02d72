#include "report/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "report/layout.h"
#include "util/paths.h"
#include "util/system.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t frames_without_project = 3;
constexpr size_t most_thrown_before = 5;

std::string heading(const Style& style, const std::string& text) {
  return "\n" + style.paint(Tone::plain, text) + "\n";
}

std::string duration_or_dash(Duration duration) {
  return duration == Duration::zero() ? "-" : format_duration(duration);
}

const std::string& thread_name(const Trace& trace, uint32_t thread) {
  static const std::string unknown = "?";
  return thread < trace.threads.size() ? trace.threads[thread].name.text : unknown;
}

std::string processes_text(const Trace& trace, const Style& style) {
  if (trace.processes.size() < 2) return "";
  Table table({"PROCESS", "PID", "PARENT", "STARTED"});
  for (const TracedProcess& process : trace.processes) {
    const std::string executable = process.executable < trace.images.size()
                                       ? base_name(trace.images[process.executable].path)
                                       : process.name;
    const std::string parent = process.parent < trace.processes.size()
                                   ? std::to_string(trace.processes[process.parent].pid)
                                   : "-";
    table.add({executable, std::to_string(process.pid), parent, format_duration(process.started)});
  }
  return heading(style, fmt::format("{} processes", trace.processes.size())) + table.text();
}

std::string lifetime_of(const TracedThread& thread) {
  return thread.ended == Duration::zero()
             ? "to the end"
             : format_duration(std::max(Duration{}, thread.ended - thread.started));
}

std::string threads_text(const Trace& trace, const Style& style, size_t most) {
  std::map<uint32_t, uint64_t> visits, calls;
  for (const TracedVisits& entry : trace.visits) visits[entry.thread] += entry.visits;
  for (const TracedCall& call : trace.calls) ++calls[call.thread];
  Table table({"THREAD", "STARTED BY", "AFTER", "LIVED", "CALLS", "EVENTS"});
  for (uint32_t i = 0; i < std::min(most, trace.threads.size()); ++i) {
    const TracedThread& thread = trace.threads[i];
    const bool has_parent = thread.parent < trace.threads.size();
    table.add({thread.name.text, has_parent ? thread_name(trace, thread.parent) : "-",
               format_duration(thread.started), lifetime_of(thread), std::to_string(visits[i]),
               std::to_string(calls[i])});
  }
  std::string text =
      heading(style, counted(static_cast<long long>(trace.threads.size()), "thread")) +
      table.text();
  if (trace.threads.size() > most)
    text += fmt::format("  and {} more\n", trace.threads.size() - most);
  return text;
}

// All that the threads of a trace did at one site.
struct SiteUse {
  uint64_t visits = 0;
  Duration waited{};
  std::vector<std::string> threads;
};

std::map<uint32_t, SiteUse> uses_of(const Trace& trace) {
  std::map<uint32_t, SiteUse> uses;
  for (const TracedVisits& entry : trace.visits) {
    SiteUse& use = uses[entry.site];
    use.visits += entry.visits;
    use.waited += entry.waited;
    use.threads.push_back(thread_name(trace, entry.thread));
  }
  return uses;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t most = 3;
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<ptrdiff_t>(std::min(most, names.size())));
  std::string text = join(first, ", ");
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string group_text(const Trace& trace, const Style& style, const std::string& group,
                       const std::map<uint32_t, SiteUse>& uses, size_t most) {
  Table table({"SITE", "VISITS", "WAITED", "THREADS", "LOCATION"});
  size_t count = 0;
  for (const auto& [number, use] : uses) {
    const TracedSite& site = trace.sites[number];
    if (site.group != group || ++count > most) continue;
    table.add({to_string(site.name), std::to_string(use.visits), duration_or_dash(use.waited),
               some_of(use.threads), site.location});
  }
  std::string text = heading(style, group) + table.text();
  if (count > most) text += fmt::format("  and {} more sites\n", count - most);
  return text;
}

std::string sites_text(const Trace& trace, const Style& style, size_t most) {
  const auto uses = uses_of(trace);
  std::vector<std::string> groups;
  for (const auto& [number, use] : uses)
    if (number < trace.sites.size() &&
        std::ranges::find(groups, trace.sites[number].group) == groups.end())
      groups.push_back(trace.sites[number].group);
  std::ranges::sort(groups);
  std::string text;
  for (const std::string& group : groups) text += group_text(trace, style, group, uses, most);
  if (!text.empty()) return text;
  return heading(style, "no calls of timing APIs from project code") +
         "  If that is wrong, say in [code] of .unflake/config.toml which folders are the "
         "project's;\n  --system shows the calls of all other code.\n";
}

std::string nameless(const Trace& trace, const TracedFunction& function) {
  const bool is_known = function.image < trace.images.size();
  return fmt::format("{}+{:#x}", is_known ? base_name(trace.images[function.image].path) : "?",
                     function.address);
}

std::string functions_text(const Trace& trace, const Style& style) {
  std::vector<std::string> names;
  for (const TracedFunction& function : trace.functions)
    names.push_back("  " +
                    one_line(function.name.empty() ? nameless(trace, function) : function.name));
  std::ranges::sort(names);
  std::string text =
      heading(style, counted(static_cast<long long>(names.size()), "function") + " executed");
  for (const std::string& name : names) text += name + "\n";
  return text;
}

std::string frame_place(const Frame& frame) {
  if (frame.file.empty()) return "";
  return fmt::format(" {}:{}", frame.file, frame.line);
}

struct StackLine {
  std::string text;
  bool is_project = false;
};

std::vector<StackLine> stack_lines(const TracedStack& stack,
                                   const std::vector<TracedImage>& images) {
  std::vector<StackLine> lines;
  for (const TracedFrame& frame : stack.frames) {
    const std::string image =
        frame.image < images.size() ? base_name(images[frame.image].path) : "?";
    const std::string address = fmt::format("{}+{:#x}", image, frame.address);
    if (frame.source.empty()) lines.push_back({one_line(address), false});
    for (size_t i = 0; i < frame.source.size(); ++i) {
      const Frame& source = frame.source[i];
      const bool is_nameless = source.function.empty() && source.file.empty();
      const std::string& function = source.function.empty() ? image : source.function;
      lines.push_back({one_line(is_nameless ? address : function + frame_place(source)) +
                           (source.inlined ? " (inlined)" : ""),
                       i >= frame.first_project});
    }
  }
  return lines;
}

// How often the line repeats, one below the other.
size_t repeats(const std::vector<StackLine>& lines, size_t first, size_t most_frames) {
  size_t end = first + 1;
  while (end < std::min(lines.size(), most_frames) && lines[end].text == lines[first].text) ++end;
  return end - first;
}

}  // namespace

std::string stack_text(const TracedStack& stack, const std::vector<TracedImage>& images,
                       StackDetail detail, size_t most_frames) {
  const std::vector<StackLine> lines = stack_lines(stack, images);
  const bool has_project = std::ranges::any_of(lines, &StackLine::is_project);
  std::string text;
  size_t left_out = 0;
  for (size_t i = 0; i < std::min(lines.size(), most_frames); ++i) {
    const bool shown = detail == StackDetail::full ||
                       (has_project ? lines[i].is_project : i < frames_without_project);
    left_out += shown ? 0 : 1;
    if (!shown) continue;
    if (left_out > 0) text += fmt::format("  {}\n", left_out_frames(std::exchange(left_out, 0)));
    const bool may_fold = detail == StackDetail::project && lines[i].is_project;
    const size_t times = may_fold ? repeats(lines, i, most_frames) : 1;
    text += fmt::format("  #{:<2} {}\n", i, repeated_frame(lines[i].text, times));
    i += times - 1;
  }
  if (left_out > 0) text += fmt::format("  {}\n", left_out_frames(left_out));
  return lines.size() > most_frames ? text + "  ...\n" : text;
}

std::string failures_text(const Trace& trace, const Style& style, StackDetail detail) {
  std::string text;
  size_t before = 0;
  for (const TracedFailure& failure : trace.failures) {
    const bool is_line = detail == StackDetail::project && failure.kind == "thrown before";
    if (is_line && ++before > most_thrown_before) continue;
    text += heading(style, failure_line(failure, trace));
    if (!is_line) text += stack_text(failure.stack, trace.images, detail);
  }
  if (before > most_thrown_before)
    text += fmt::format("  and {} more exceptions thrown before, which --full shows\n",
                        before - most_thrown_before);
  return text;
}

std::string failure_line(const TracedFailure& failure, const Trace& trace) {
  std::string text = failure.kind;
  if (failure.signal != 0) text += " " + signal_name(failure.signal);
  text += " in " + thread_name(trace, failure.thread);
  if (!failure.file.empty())
    text += fmt::format(" at {}:{}", base_name(failure.file), failure.line);
  if (!failure.exception_type.empty()) text += ": " + failure.exception_type;
  if (!failure.message.empty()) text += ": " + failure.message;
  return one_line(text);
}

std::string losses_text(const Trace& trace, const Style& style) {
  std::string text;
  const auto tell = [&](const std::string& words) {
    text += fmt::format("{}: {}\n", style.paint(Tone::doubtful, "note"), one_line(words));
  };
  for (const Drops& drops : trace.drops)
    tell(fmt::format("{} {} were lost for lack of room", drops.count, drops.what));
  for (const TracedProcess& process : trace.processes)
    for (const std::string& words : process.degraded)
      tell(fmt::format("in process {}: {}", process.pid, words));
  for (const std::string& problem : trace.problems) tell(problem);
  return text.empty() ? "" : "\n" + text;
}

std::string trace_text(const Trace& trace, const Style& style, const TraceTextOptions& options) {
  std::string text = processes_text(trace, style) +
                     threads_text(trace, style, options.most_threads) +
                     sites_text(trace, style, options.most_sites);
  if (options.functions) text += functions_text(trace, style);
  return text + failures_text(trace, style, options.stacks) + losses_text(trace, style);
}

}  // namespace unflake
