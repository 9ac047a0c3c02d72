#include "repro/relocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "repro/repro_json.h"
#include "trace/translation.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using Kind = Relocated::Kind;
using Threads = Intervention::Threads;

// "server!pool.cc:31~4f1a#2": a program, the place that starts the thread, and which of them.
struct ThreadText {
  std::string program;  // with its `!`
  std::string place;
  std::string path;    // `~` and digits
  std::string number;  // `#2` or `#*`; empty: the first thread of a program
};

ThreadText parts_of(const std::string& text) {
  ThreadText parts;
  const size_t program = text.rfind('!');
  if (program != std::string::npos) parts.program = text.substr(0, program + 1);
  parts.place = text.substr(parts.program.size());
  if (const size_t hash = parts.place.rfind('#'); hash != std::string::npos) {
    parts.number = parts.place.substr(hash);
    parts.place.resize(hash);
  }
  const size_t tilde = parts.place.rfind('~');
  if (tilde != std::string::npos && tilde + 5 == parts.place.size()) {
    parts.path = parts.place.substr(tilde);
    parts.place.resize(tilde);
  }
  return parts;
}

// The frame of a thread's creation that gave the thread its name.
const Frame* frame_that_spawned(const TracedThread& thread, const SiteName& place,
                                const Trace& seen) {
  if (thread.spawn_stack >= seen.stacks.size()) return nullptr;
  for (const TracedFrame& frame : seen.stacks[thread.spawn_stack].frames)
    for (const Frame& source : frame.source)
      if (is_same_line(source, place)) return &source;
  return nullptr;
}

// Names as they are in the source; a place without debug information has a function only.
SiteInSource spawn_place(const TracedThread& thread, const Trace& seen, const CodeView& code) {
  const ThreadText parts = parts_of(thread.name.text);
  SiteInSource place;
  const auto name = parse_site(parts.place);
  if (!name) return place;
  place.name = *name;
  const Frame* frame = frame_that_spawned(thread, *name, seen);
  const std::string function = frame ? frame->function : name->function;
  place.context = name->file.empty() ? SiteContext{function, -1, "", "", ""}
                                     : context_at(code, "", name->file, name->line, function);
  return place;
}

SiteInSource call_place(const TracedSite& site, const CodeView& code) {
  const SiteName& name = site.name;
  if (name.file.empty()) return {name, {name.function, -1, "", "", ""}};
  return {name, context_at(code, name.image, name.file, name.line, name.function)};
}

class CodePlaces {
 public:
  CodePlaces(const Trace& seen, const CodeView& code) : seen_(seen), code_(code) {}

  std::vector<SiteInSource> like(const SiteName& site, const SiteContext& context) const {
    if (!site.api.empty()) return calls(site);
    return site.file.empty() ? functions(site) : lines(site, context);
  }

 private:
  std::vector<SiteInSource> calls(const SiteName& wanted) const {
    std::vector<SiteInSource> places;
    for (const TracedSite& site : seen_.sites)
      if (site.name.api == wanted.api && site.name.image == wanted.image)
        places.push_back(call_place(site, code_));
    return places;
  }

  // Of the file, and of those that its function may have moved to.
  std::vector<SiteInSource> lines(const SiteName& wanted, const SiteContext& context) const {
    std::set<std::string> files{wanted.file};
    for (const auto& [name, place] : code_.functions(wanted.image))
      if (!context.function.empty() && unqualified(name) == unqualified(context.function))
        files.insert(place.file);
    std::vector<SiteInSource> places;
    for (const std::string& file : files)
      for (const CodeLine& line : code_.lines(wanted.image, file)) {
        SiteName name = wanted;
        name.file = file;
        name.line = line.line;
        name.function = line.function;
        places.push_back({name, context_at(code_, wanted.image, file, line.line, line.function)});
      }
    return places;
  }

  std::vector<SiteInSource> functions(const SiteName& wanted) const {
    std::vector<SiteInSource> places;
    for (const auto& [function, place] : code_.functions(wanted.image)) {
      SiteName name = wanted;
      name.function = function;
      places.push_back({name, context_at(code_, wanted.image, place.file, place.line, function)});
    }
    return places;
  }

  const Trace& seen_;
  const CodeView& code_;
};

bool names_function(const std::string& name, const std::string& function) {
  return function == name || function.ends_with("::" + name);
}

class Relocator {
 public:
  Relocator(const Repro& repro, const Trace& seen, const CodeView& code)
      : repro_(repro), seen_(seen), code_(code), places_(seen, code) {}

  Relocation operator()() {
    done_.plan = repro_.plan;
    for (size_t i = 0; i < done_.plan.interventions.size(); ++i) {
      Intervention& what = done_.plan.interventions[i];
      move_site(what.site, i < repro_.sites.size() ? repro_.sites[i] : SiteContext());
      if (what.threads != Threads::any)
        move_thread(what, i < repro_.spawns.size() ? repro_.spawns[i] : SiteContext());
    }
    return std::move(done_);
  }

 private:
  void note(Kind kind, const std::string& from, const std::string& to, std::string text) {
    for (const Relocated& known : done_.notes)
      if (known.text == text) return;
    done_.notes.push_back({kind, from, to, std::move(text)});
  }

  // One sentence for every kind of change.
  void tell(const FoundPlace& found, const SiteInSource& was, const std::string& from,
            const std::vector<SiteInSource>& candidates, const std::string& to) {
    const SiteInSource& is = candidates[found.index];
    const std::string arrow = from == to ? from : fmt::format("{} -> {}", from, to);
    switch (found.kind) {
      case FoundPlace::Kind::unchanged:
        return;
      case FoundPlace::Kind::moved:
        if (from != to)
          note(Kind::moved, from, to, fmt::format("moved: {}{}", arrow, other_function(was, is)));
        return;
      case FoundPlace::Kind::edited:
        return note(Kind::edited, from, to,
                    fmt::format("edited: {}: `{}` is now `{}`", arrow,
                                shorten(was.context.text, 100), shorten(is.context.text, 100)));
      case FoundPlace::Kind::ambiguous:
        return note(
            Kind::ambiguous, from, to,
            fmt::format("ambiguous: {}: {} other places are as likely, and this is the nearest{}",
                        arrow, found.as_likely.size(), other_function(was, is)));
    }
  }

  static std::string other_function(const SiteInSource& was, const SiteInSource& is) {
    if (was.context.function.empty() || was.context.function == is.context.function) return "";
    return fmt::format(", from {} to {}", was.context.function, is.context.function);
  }

  static std::string in_function(const SiteContext& context) {
    std::string text = context.function.empty() ? "" : " in " + context.function;
    if (!context.text.empty()) text += fmt::format(", `{}`", shorten(context.text, 100));
    return text;
  }

  void move_site(SiteName& site, SiteContext context) {
    const bool is_entry = site.api.empty() && site.file.empty() && site.offset == 0;
    if (context.function.empty()) context.function = site.function;
    const bool is_end = site.function == "exit" || site == end_of_thread();
    if (is_entry && (is_end || has_function(site, context))) return;
    const std::string from = to_string(site);
    if (is_instruction(site)) {
      if (!is_as_it_was(site, context))
        note(Kind::gone, from, "",
             fmt::format("gone: {}{}: its code has changed", from, in_function(context)));
      return;
    }
    const SiteInSource was{site, context};
    const std::vector<SiteInSource> candidates = places_.like(site, context);
    const auto found = find_place(was, candidates);
    if (!found)
      return note(Kind::gone, from, "", "gone: " + from + in_function(context) + still_there(was));
    const std::string to = to_string(candidates[found->index].name);
    tell(*found, was, from, candidates, to);
    site = candidates[found->index].name;
  }

  // Another compilation may have put something else there, and nothing tells where it went.
  bool is_as_it_was(const SiteName& site, const SiteContext& context) const {
    const auto now = code_.instruction(site);
    if (!now) return false;
    if (context.text.empty()) return true;  // nobody has written it down
    return context_at(code_, site.image, now->file, now->line, now->function).text == context.text;
  }

  bool has_function(const SiteName& site, const SiteContext& context) const {
    return std::ranges::any_of(code_.functions(site.image), [&](const auto& function) {
      return function.first == context.function || names_function(site.function, function.first);
    });
  }

  // Not every run reaches every call.
  std::string still_there(const SiteInSource& was) const {
    if (was.name.api.empty() || was.context.text.empty()) return "";
    const CodeView::Lines& lines = code_.source(was.name.file);
    for (size_t i = 0; i < lines.size(); ++i)
      if (trim(lines[i]) == was.context.text)
        return fmt::format("; {}:{} reads the same, and no run has called {} there", was.name.file,
                           i + 1, was.name.api);
    return "";
  }

  void move_thread(Intervention& what, const SiteContext& context) {
    const std::string from = thread_text(what);
    const ThreadText parts = parts_of(from);
    const auto place = parse_site(parts.place);
    if (!parts.number.empty() && place) {
      const auto to = class_now(parts, SiteInSource{*place, context}, from);
      if (!to)
        return note(Kind::gone, from, "",
                    fmt::format("gone: the thread {}{}", from, in_function(context)));
      what.thread.text = *to + parts.number;
    }
    if (refresh_thread(what, seen_)) return;
    const std::string now = what.thread.text;
    note(Kind::gone, from, "",
         now == from ? fmt::format("gone: the thread {} was not started", from)
                     : fmt::format("gone: the thread {}, which would be {} now, was not started",
                                   from, now));
  }

  // The class of the threads that the place starts now.
  std::optional<std::string> class_now(const ThreadText& parts, const SiteInSource& was,
                                       const std::string& from) {
    std::vector<SiteInSource> candidates;
    std::vector<std::string> classes;
    for (const TracedThread& thread : seen_.threads) {
      const ThreadText other = parts_of(thread.name.text);
      const std::string of = thread_class_of(thread.name.text);
      if (other.number.empty() || other.program != parts.program) continue;
      if (std::ranges::find(classes, of) != classes.end()) continue;
      classes.push_back(of);
      candidates.push_back(spawn_place(thread, seen_, code_));
    }
    const auto found = find_place(was, candidates);
    if (!found) return std::nullopt;
    tell(*found, was, from, candidates, classes[found->index] + parts.number);
    return on_same_path(parts, *found, candidates, classes, from);
  }

  // Where several paths lead to a place, the digits that tell them apart change with a build.
  std::string on_same_path(const ThreadText& parts, const FoundPlace& found,
                           const std::vector<SiteInSource>& candidates,
                           const std::vector<std::string>& classes, const std::string& from) {
    const std::string place = to_string(candidates[found.index].name);
    std::vector<std::string> ways;
    for (size_t i = 0; i < classes.size(); ++i)
      if (to_string(candidates[i].name) == place) ways.push_back(classes[i]);
    const std::string exact = parts.program + place + parts.path;
    if (ways.size() == 1) return ways.front();
    if (std::ranges::find(ways, exact) != ways.end()) return exact;
    note(Kind::ambiguous, from, ways.front() + parts.number,
         fmt::format(
             "ambiguous: the thread {}: its place is reached on {} ways now, and this takes {}",
             from, ways.size(), ways.front() + parts.number));
    return ways.front();
  }

  const Repro& repro_;
  const Trace& seen_;
  const CodeView& code_;
  const CodePlaces places_;
  Relocation done_;
};

SiteContext describe_site(const SiteName& site, const Trace& seen, const CodeView& code) {
  if (is_instruction(site)) {
    const auto spot = code.instruction(site);
    return spot ? context_at(code, site.image, spot->file, spot->line, spot->function)
                : SiteContext{site.function, -1, "", "", ""};
  }
  const CodePlaces places(seen, code);
  for (const SiteInSource& place : places.like(site, {})) {
    const bool is_entry = site.api.empty() && site.file.empty();
    if (to_string(place.name) == to_string(site) ||
        (is_entry && names_function(site.function, place.name.function)))
      return place.context;
  }
  return {site.function, -1, "", "", ""};
}

SiteContext describe_spawn(const Intervention& what, const Trace& seen, const CodeView& code) {
  if (what.threads == Threads::any) return {};
  const std::string wanted = thread_text(what);
  for (const TracedThread& thread : seen.threads) {
    const std::string& text = thread.name.text;
    const bool same =
        what.threads == Threads::in_class ? thread_class_of(text) + "#*" == wanted : text == wanted;
    if (same && !parts_of(text).number.empty()) return spawn_place(thread, seen, code).context;
  }
  return {};
}

}  // namespace

std::string_view to_string(Relocated::Kind kind) {
  switch (kind) {
    case Kind::moved:
      return "moved";
    case Kind::edited:
      return "edited";
    case Kind::ambiguous:
      return "ambiguous";
    case Kind::gone:
      return "gone";
  }
  return "?";
}

bool Relocation::is_complete() const {
  return std::ranges::none_of(notes, [](const Relocated& note) { return note.kind == Kind::gone; });
}

Relocation relocate(const Repro& repro, const Trace& seen, const CodeView& code) {
  return Relocator(repro, seen, code)();
}

void add_names(Trace& seen, const Trace& other) {
  for (const TracedSite& site : other.sites)
    if (std::ranges::find(seen.sites, site.name, &TracedSite::name) == seen.sites.end())
      seen.sites.push_back(site);
  for (TracedThread thread : other.threads) {
    if (std::ranges::find(seen.threads, thread.name, &TracedThread::name) != seen.threads.end())
      continue;
    if (thread.spawn_stack < other.stacks.size()) {
      seen.stacks.push_back(other.stacks[thread.spawn_stack]);
      thread.spawn_stack = static_cast<uint32_t>(seen.stacks.size() - 1);
    }
    seen.threads.push_back(thread);
  }
}

void describe_sites(Repro& repro, const Trace& seen, const CodeView& code) {
  repro.sites.clear();
  repro.spawns.clear();
  for (const Intervention& what : repro.plan.interventions) {
    repro.sites.push_back(describe_site(what.site, seen, code));
    repro.spawns.push_back(describe_spawn(what, seen, code));
  }
  repro.failing_line = {};
  if (repro.failure.line > 0 && !repro.failure.file.empty())
    repro.failing_line =
        context_at(code, "", repro.failure.file, repro.failure.line, repro.failure.function);
}

bool refresh_thread(Intervention& intervention, const Trace& seen) {
  if (intervention.threads == Threads::any) return true;
  const std::string wanted = thread_text(intervention);
  const bool is_class = intervention.threads == Threads::in_class;
  for (const TracedThread& thread : seen.threads) {
    const std::string& text = thread.name.text;
    if ((is_class ? thread_class_of(text) + "#*" : text) != wanted) continue;
    intervention.thread = {wanted, thread.name.name, thread.name.thread_class};
    return true;
  }
  return false;
}

bool is_same_failure(const Repro& repro, const Outcome& outcome, const CodeView& code) {
  if (outcome.signature == repro.signature) return true;
  if (outcome.failures.empty()) return false;
  const Failure &was = repro.failure, &is = outcome.failures.front();
  // What was recorded as a status may be read as a check by now.
  if (was.kind == FailureKind::exit_status &&
      signature_of(outcome.failures.back()) == repro.signature)
    return true;
  if (is.kind != was.kind || base_name(is.file) != base_name(was.file)) return false;
  if (is.line > 0 && was.line > 0 && !repro.failing_line.text.empty()) {
    const SiteContext now = context_at(code, "", is.file, is.line, is.function);
    if (!now.text.empty()) return now.text == repro.failing_line.text;
  }
  const bool says_something = !was.expression.empty() || !was.function.empty();
  return says_something && is.expression == was.expression && is.function == was.function;
}

namespace {

bool is_of_memory(FailureKind kind) {
  return kind == FailureKind::signal || kind == FailureKind::address_sanitizer ||
         kind == FailureKind::memory_sanitizer || kind == FailureKind::valgrind;
}

}  // namespace

bool is_same_mistake(const Repro& repro, const Outcome& outcome, const CodeView& code) {
  if (is_same_failure(repro, outcome, code)) return true;
  return is_of_memory(repro.failure.kind) &&
         std::ranges::any_of(outcome.failures,
                             [](const Failure& failure) { return is_of_memory(failure.kind); });
}

}  // namespace unflake
