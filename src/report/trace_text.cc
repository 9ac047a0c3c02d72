#include "report/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "report/layout.h"
#include "trace/names.h"
#include "trace/roles.h"
#include "util/paths.h"
#include "util/result.h"
#include "util/text.h"

namespace unflake {
namespace {

constexpr size_t most_stacks = 16;

std::string frame_line(const ThreadAtEnd::Frame& frame) {
  std::string text = frame.function.empty() ? "?" : frame.function;
  if (!frame.file.empty()) text += fmt::format(" {}:{}", base_name(frame.file), frame.line);
  return one_line(text);
}

// A function that calls itself endlessly fills a stack with one line.
std::vector<std::string> without_repeats(const std::vector<std::string>& lines) {
  std::vector<std::string> told;
  for (auto line = lines.begin(); line != lines.end();) {
    const auto next =
        std::find_if(line, lines.end(), [&](const auto& other) { return other != *line; });
    told.push_back(repeated_frame(*line, static_cast<size_t>(next - line)));
    line = next;
  }
  return told;
}

std::vector<std::string> frame_lines(const ThreadAtEnd& thread, StackDetail detail) {
  std::vector<std::string> lines;
  if (thread.frames.empty()) lines.push_back("  no stack: " + one_line(thread.why_empty));
  size_t left_out = 0;
  const auto tell_left_out = [&] {
    if (left_out > 0) lines.push_back("  " + left_out_frames(std::exchange(left_out, 0)));
  };
  for (size_t i = 0; i < thread.frames.size(); ++i) {
    if (detail == StackDetail::full || i == 0 || thread.frames[i].is_project) {
      tell_left_out();
      lines.push_back("  " + frame_line(thread.frames[i]));
    } else {
      ++left_out;
    }
  }
  tell_left_out();
  return detail == StackDetail::full ? lines : without_repeats(lines);
}

std::string heading(const std::vector<const ThreadAtEnd*>& threads) {
  const ThreadAtEnd& first = *threads.front();
  if (threads.size() > 1) return fmt::format("{} threads were at", threads.size());
  return fmt::format("{} {} ({}) was at", first.is_main() ? "main thread" : "thread", first.tid,
                     one_line(first.name));
}

}  // namespace

std::string repeated_frame(const std::string& frame, size_t times) {
  return times > 1 ? fmt::format("{} ({} times)", frame, times) : frame;
}

std::string left_out_frames(size_t count) {
  return fmt::format("... {} of libraries", counted(static_cast<long long>(count), "frame"));
}

std::vector<std::string> timeout_stack_lines(const ProcessResult& process, StackDetail detail) {
  std::vector<std::vector<std::string>> order;
  std::map<std::vector<std::string>, std::vector<const ThreadAtEnd*>> groups;
  for (const ThreadAtEnd& thread : process.thread_stacks) {
    auto frames = frame_lines(thread, detail);
    auto& group = groups[frames];
    group.push_back(&thread);
    if (group.size() == 1) order.push_back(std::move(frames));
  }
  const size_t most = detail == StackDetail::full ? order.size() : most_stacks;
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(order.size(), most); ++i) {
    lines.push_back(heading(groups[order[i]]));
    lines.insert(lines.end(), order[i].begin(), order[i].end());
  }
  if (order.size() > most)
    lines.push_back(fmt::format("and {} more stacks, which --full shows", order.size() - most));
  return lines;
}

namespace {

constexpr size_t longest_trace_line = 500;

// Bytes of the colour sequence (ESC [ digits ; m) that starts the text, 0 when none does.
size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

// Tests that insist on colours stay readable: escaped, the sequences would bury the text.
std::string without_colours(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t escape = std::min(text.find('\x1b'), text.size());
    plain += text.substr(0, escape);
    text.remove_prefix(escape);
    if (text.empty()) break;
    const size_t length = colour_length(text);
    if (length == 0) plain += text[0];
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return plain;
}

// Where the last `most` lines of a text without a final line feed start.
size_t start_of_last_lines(std::string_view text, size_t most) {
  size_t start = text.size();
  for (size_t i = 0; i < most; ++i) {
    if (start == 0) return 0;
    const size_t feed = text.rfind('\n', start - 1);
    if (feed == std::string_view::npos) return 0;
    start = feed;
  }
  return start + 1;
}

}  // namespace

Excerpt last_lines(const ProcessResult& process, size_t most) {
  const std::string all = whole_output(process);
  const std::string_view text = trim(all).empty() ? std::string_view() : all;
  const size_t end = text.find_last_not_of("\r\n");
  if (end == std::string_view::npos) return {};
  const std::string_view body = text.substr(0, end + 1);
  const size_t start = start_of_last_lines(body, most);
  Excerpt excerpt;
  excerpt.left_out = static_cast<uint64_t>(std::count(body.begin(), body.begin() + start, '\n'));
  if (process.output.dropped() > 0 && start > process.output.head.size())
    excerpt.left_out_bytes = process.output.total + process.errors.total - (all.size() - start);
  for (const std::string_view line : split_lines(body.substr(start)))
    excerpt.lines.push_back(printable(shorten(without_colours(line), longest_trace_line)));
  return excerpt;
}

std::string printable_output(const ProcessResult& process, size_t most) {
  return printable(cut_middle(without_colours(whole_output(process)), most), LineFeeds::keep);
}

std::string bounded_text(std::string_view text, size_t most) {
  return printable(shorten(text, most), LineFeeds::keep);
}

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

constexpr size_t most_of_one_kind = 8;  // that are shown one by one

// One thread, or many of a kind.
struct ThreadRow {
  uint32_t first = no_index;
  size_t count = 0;
  Duration started = Duration::max(), lived{};
  bool lives_to_the_end = false;
  uint64_t visits = 0, calls = 0;
};

class ThreadRows {
 public:
  explicit ThreadRows(const Trace& trace) : trace_(trace), roles_(trace) {
    for (const TracedVisits& entry : trace.visits) visits_[entry.thread] += entry.visits;
    for (const TracedCall& call : trace.calls) ++calls_[call.thread];
    std::map<std::string, size_t> members, row_of;
    for (uint32_t i = 0; i < trace.threads.size(); ++i) ++members[roles_.kind_of(i)];
    for (uint32_t i = 0; i < trace.threads.size(); ++i) {
      const std::string& kind = roles_.kind_of(i);
      const auto [known, is_new] = row_of.try_emplace(kind, rows_.size());
      const bool is_alone = members[kind] <= most_of_one_kind;
      if (is_new || is_alone) rows_.emplace_back();
      add(is_new || !is_alone ? rows_[known->second] : rows_.back(), i);
    }
  }

  const std::vector<ThreadRow>& rows() const { return rows_; }

  std::vector<std::string> cells(const ThreadRow& row) {
    const TracedThread& thread = trace_.threads[row.first];
    const bool has_parent = thread.parent < trace_.threads.size();
    const std::string role = roles_.shared_by(row.first);
    return {row.count == 1 ? thread.name.text
                           : fmt::format("{} and {} more", thread.name.text, row.count - 1),
            has_parent && role != thread_class_of(thread.name.text) ? one_line(role) : "-",
            has_parent ? thread_name(trace_, thread.parent) : "-",
            format_duration(row.started),
            row.lives_to_the_end ? "to the end" : format_duration(row.lived),
            std::to_string(row.visits),
            std::to_string(row.calls)};
  }

 private:
  void add(ThreadRow& row, uint32_t number) {
    const TracedThread& thread = trace_.threads[number];
    if (row.count++ == 0) row.first = number;
    row.started = std::min(row.started, thread.started);
    row.lived = std::max(row.lived, thread.ended - thread.started);
    row.lives_to_the_end = row.lives_to_the_end || thread.ended == Duration::zero();
    row.visits += visits_[number];
    row.calls += calls_[number];
  }

  const Trace& trace_;
  const ThreadRoles roles_;
  std::map<uint32_t, uint64_t> visits_, calls_;
  std::vector<ThreadRow> rows_;
};

std::string threads_text(const Trace& trace, const Style& style, size_t most) {
  Table table({"THREAD", "ROLE", "STARTED BY", "AFTER", "LIVED", "CALLS", "EVENTS"});
  ThreadRows rows(trace);
  size_t left_out = 0;
  for (size_t i = 0; i < rows.rows().size(); ++i) {
    if (i < most)
      table.add(rows.cells(rows.rows()[i]));
    else
      left_out += rows.rows()[i].count;
  }
  std::string text =
      heading(style, counted(static_cast<long long>(trace.threads.size()), "thread")) +
      table.text();
  if (left_out > 0) text += fmt::format("  and {} more\n", left_out);
  return text;
}

// All that the threads of a trace did at one site.
struct SiteUse {
  uint64_t visits = 0;
  Duration waited{};
  std::vector<uint32_t> threads;
  std::vector<std::string> callers;  // for whom a wrapper made the calls
};

std::map<uint32_t, SiteUse> uses_of(const Trace& trace) {
  std::map<uint32_t, SiteUse> uses;
  for (const TracedVisits& entry : trace.visits) {
    SiteUse& use = uses[entry.site];
    use.visits += entry.visits;
    use.waited += entry.waited;
    use.threads.push_back(entry.thread);
  }
  const Wrappers wrappers({&trace});
  std::set<std::pair<uint32_t, uint32_t>> seen;  // of stacks at sites
  for (const TracedCall& call : trace.calls) {
    if (call.is_intervention || !seen.emplace(call.site, call.stack).second) continue;
    const Frame* caller = caller_past(trace, call, wrappers);
    if (caller == nullptr) continue;
    std::vector<std::string>& callers = uses[call.site].callers;
    const std::string place = location_of(*caller);
    if (std::ranges::find(callers, place) == callers.end()) callers.push_back(place);
  }
  return uses;
}

// "base/sync.cc:20 in Mutex::lock, for net/loop.cc:57 in Loop::run and 2 more"
std::string location_text(const TracedSite& site, const SiteUse& use) {
  if (use.callers.empty()) return site.location;
  std::string text = fmt::format("{}, for {}", site.location, use.callers.front());
  if (use.callers.size() > 1) text += fmt::format(" and {} more", use.callers.size() - 1);
  return text;
}

// "main, pool.cc:31#1 and 297 more of its kind"
std::string some_of(const Trace& trace, const std::vector<uint32_t>& threads) {
  constexpr size_t most = 3;
  std::vector<std::string> names;
  std::map<std::string, size_t> of_kind;
  for (const uint32_t thread : threads) {
    const std::string& name = thread_name(trace, thread);
    const std::string kind = threads.size() > most ? thread_class_of(name) : name;
    if (++of_kind[kind] == 1) names.push_back(name);
  }
  std::vector<std::string> told;
  size_t left_out = 0;
  for (const std::string& name : names) {
    const size_t others = of_kind[threads.size() > most ? thread_class_of(name) : name] - 1;
    if (told.size() == most)
      left_out += others + 1;
    else
      told.push_back(others == 0 ? name : fmt::format("{} and {} of its kind", name, others));
  }
  std::string text = join(told, ", ");
  if (left_out > 0) text += fmt::format(" and {} more", left_out);
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
               some_of(trace, use.threads), one_line(location_text(site, use))});
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

// Overloads have one name.
std::set<std::string> names_of_kind(const Trace& trace, FunctionKind kind) {
  std::set<std::string> names;
  for (const TracedFunction& function : trace.functions)
    if (function.kind == kind)
      names.insert(one_line(function.name.empty() ? nameless(trace, function) : function.name));
  return names;
}

std::string functions_text(const Trace& trace, const Style& style) {
  constexpr std::pair<FunctionKind, const char*> kinds[] = {
      {FunctionKind::project, "executed"},
      {FunctionKind::call, "of other libraries called"},
      {FunctionKind::library, "executed that other libraries put into the program"}};
  std::string text;
  for (const auto& [kind, what] : kinds) {
    const std::set<std::string> names = names_of_kind(trace, kind);
    if (names.empty() && kind != FunctionKind::project) continue;
    const std::string count = counted(static_cast<long long>(names.size()), "function");
    text += heading(style, fmt::format("{} {}", count, what));
    for (const std::string& name : names) text += "  " + name + "\n";
  }
  return text;
}

constexpr size_t most_functions_of_a_cause = 6;

std::string exposures_text(const std::vector<Exposure>& exposed, const Style& style) {
  if (exposed.empty()) return heading(style, "exposed to no root cause that is known");
  std::string text =
      heading(style, "exposed to " + counted(static_cast<long long>(exposed.size()), "root cause"));
  for (const Exposure& one : exposed) {
    std::vector<std::string> some = one.functions;
    some.resize(std::min(some.size(), most_functions_of_a_cause));
    const size_t more = one.functions.size() - some.size();
    text += fmt::format("  {}: {}{}\n", one_line(one.cause), one_line(join(some, ", ")),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
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
  text += " in " +
          (failure.thread < trace.threads.size() ? told(trace.threads[failure.thread].name) : "?");
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
  if (trace.calls_left_out > 0)
    tell(
        fmt::format("{} more calls are only counted: locks and looks at clocks that a thread "
                    "repeated, and nobody had to wait there",
                    trace.calls_left_out));
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
  if (options.functions)
    text += functions_text(trace, style) + exposures_text(options.exposed, style);
  return text + failures_text(trace, style, options.stacks) + losses_text(trace, style);
}

}  // namespace unflake
