#include "trace/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "protocol/agent_protocol.h"
#include "symbols/project_code.h"
#include "trace/happens_before.h"
#include "util/paths.h"

namespace unflake {
namespace {

std::string clean(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

bool ends_with_name(const std::string& path, const std::string& suffix) {
  return path.ends_with(suffix) &&
         (path.size() == suffix.size() || path[path.size() - suffix.size() - 1] == '/');
}

}  // namespace

void FileNames::add(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const std::string cleaned = clean(path);
    by_base_[base_name(cleaned)].insert(cleaned);
  }
}

bool FileNames::is_taken(const std::string& suffix, const std::string& by_other_than) const {
  if (taken_.contains(suffix)) return true;
  const auto same_base = by_base_.find(base_name(suffix));
  return same_base != by_base_.end() &&
         std::ranges::any_of(same_base->second, [&](const std::string& other) {
           return other != by_other_than && ends_with_name(other, suffix);
         });
}

const std::string& FileNames::short_name(const std::string& path) {
  const std::string cleaned = clean(path);
  const auto known = given_.find(cleaned);
  if (known != given_.end()) return known->second;
  add({cleaned});
  std::string name = base_name(cleaned);
  while (name.size() < cleaned.size() && is_taken(name, cleaned)) {
    const size_t end = cleaned.size() - name.size() - 1;  // of what is left of the name's slash
    const size_t slash = end == 0 ? std::string::npos : cleaned.rfind('/', end - 1);
    name = slash == std::string::npos ? cleaned : cleaned.substr(slash + 1);
  }
  taken_.insert(name);
  return given_.emplace(cleaned, std::move(name)).first->second;
}

namespace {

const Frame* frame_that_names(const NamedCode& place) {
  if (place.project()) return place.project();
  return place.frames.empty() ? nullptr : &place.frames.front();
}

// The function that the linker sees, and the calls through which the line was inlined into it.
std::string copy_of(const TracedImage& image, const NamedCode& place) {
  std::string copy = image.path;
  if (place.frames.empty()) return copy;
  const size_t named = place.project() ? place.first_project : 0;
  copy += fmt::format("\n{:x}", place.frames[named].function_start);
  for (size_t i = named + 1; i < place.frames.size(); ++i)
    copy += fmt::format("\n{}:{}", place.frames[i].file, place.frames[i].line);
  return copy;
}

}  // namespace

SiteName SiteBook::name_place(const TracedImage& image, const NamedCode& place, uint64_t address) {
  SiteName name;
  const Frame* frame = frame_that_names(place);
  if (!frame || (frame->function.empty() && frame->file.empty())) {
    name.function = base_name(image.path);
    name.offset = address;
    return name;
  }
  if (image.path != own_executable_) name.image = base_name(image.path);
  name.function = frame->function;
  if (frame->file.empty() || frame->line <= 0) {
    name.offset = address - frame->function_start;
  } else {
    name.file = files_.short_name(frame->file);
    name.line = frame->line;
  }
  return name;
}

const LearnedSite& SiteBook::learn_call(const TracedImage& image, const NamedCode& place,
                                        uint64_t return_address, uint16_t api) {
  SiteName name = name_place(image, place, return_address);
  name.api = protocol::api_facts[api].name;
  const CodeAddress address{image.path, return_address};
  auto& copy = copies_[{to_string(name), copy_of(image, place)}];
  const auto known = std::ranges::find(copy, address);
  name.nth = static_cast<int>(known - copy.begin()) + 1;
  if (known == copy.end()) copy.push_back(address);
  LearnedSite& site = sites_.try_emplace(to_string(name), LearnedSite{name, api, {}}).first->second;
  if (std::ranges::find(site.addresses, address) == site.addresses.end())
    site.addresses.push_back(address);
  return site;
}

const LearnedSite* SiteBook::find(const SiteName& name) const {
  const auto found = sites_.find(to_string(name));
  return found == sites_.end() ? nullptr : &found->second;
}

std::vector<std::string> SiteBook::names() const {
  std::vector<std::string> names;
  for (const auto& [name, site] : sites_) names.push_back(name);
  return names;
}

namespace {

// `server!` before the names of threads in a program other than the test's own.
std::string place_in_program(const Spawned& thread) {
  const std::string program = thread.executable.empty() ? "" : thread.executable + "!";
  if (!thread.place.empty()) return program + thread.place;
  return program + (thread.name == thread.thread_class ? "main" : "unknown");
}

bool is_numbered(const Spawned& thread) {
  return !thread.place.empty() || thread.name != thread.thread_class;
}

}  // namespace

const std::string& ThreadBook::class_text(const Spawned& thread) {
  const auto [known, is_new] = class_texts_.try_emplace({thread.executable, thread.thread_class});
  if (is_new) {
    const std::string place = place_in_program(thread);
    const bool shared = classes_of_place_[place].size() > 1;
    known->second = shared ? fmt::format("{}~{:04x}", place, thread.thread_class & 0xffff) : place;
  }
  return known->second;
}

std::vector<ThreadName> ThreadBook::name_threads(const std::vector<Spawned>& threads) {
  for (const Spawned& thread : threads)
    classes_of_place_[place_in_program(thread)].insert(thread.thread_class);
  std::vector<ThreadName> names;
  std::map<uint64_t, uint32_t> unknown;  // these have no ordinal themselves
  for (const Spawned& thread : threads) {
    ThreadName name{class_text(thread), thread.name, thread.thread_class};
    if (is_numbered(thread)) {
      const uint32_t ordinal =
          thread.place.empty() ? unknown[thread.thread_class]++ : thread.ordinal;
      known_[name.text + "#*"] = {name.text + "#*", thread.name, thread.thread_class};
      name.text += fmt::format("#{}", uint64_t{ordinal} + 1);
    }
    known_[name.text] = name;
    names.push_back(std::move(name));
  }
  return names;
}

const ThreadName* ThreadBook::find(const std::string& text) const {
  const auto found = known_.find(text);
  return found == known_.end() ? nullptr : &found->second;
}

std::vector<std::string> ThreadBook::names() const {
  std::vector<std::string> names;
  for (const auto& [text, name] : known_) names.push_back(text);
  return names;
}

bool is_at(const Frame& frame, const SiteName& site) {
  return frame.line == site.line && !site.file.empty() && frame.file.ends_with(site.file);
}

bool is_own(const TracedFrame& frame, const Frame& source) {
  const auto index = static_cast<size_t>(&source - frame.source.data());
  return index >= frame.first_project && source.line > 0 && !source.file.empty();
}

std::string location_of(const Frame& frame) {
  if (frame.file.empty()) return frame.function;
  const std::filesystem::path path(frame.file);
  const std::string file = (path.parent_path().filename() / path.filename()).string();
  const std::string place = fmt::format("{}:{}", file, frame.line);
  return frame.function.empty() ? place : place + " in " + frame.function;
}

std::vector<const Frame*> callers_of(const TracedStack& stack, const SiteName& site) {
  std::vector<const Frame*> callers;
  bool passed = false;
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source) {
      if (passed && is_own(frame, source)) callers.push_back(&source);
      passed = passed || is_at(source, site);
    }
  return callers;
}

const TracedFailure* main_failure(const Trace& trace) {
  const auto found = std::ranges::find_if(
      trace.failures, [](const TracedFailure& one) { return one.kind != "thrown before"; });
  return found == trace.failures.end() ? nullptr : &*found;
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

namespace {

constexpr int most_layers = 6;  // of wrappers around wrappers
constexpr size_t several = 2, many = 3;

// What is in a standard header was compiled for whoever uses it.
bool is_of_library(const Frame& frame) {
  return is_system_function(frame.function) || is_framework_function(frame.function) ||
         frame.file.starts_with("/usr/include/") || frame.file.starts_with("/usr/lib/");
}

}  // namespace

std::vector<const Frame*> own_frames(const TracedStack& stack) {
  std::vector<const Frame*> own;
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (is_own(frame, source) && !is_of_library(source)) own.push_back(&source);
  return own;
}

// Looks for functions that do one thing for many: first those that call a timing API themselves,
// then those that only call such ones.
class WrapperSearch {
 public:
  WrapperSearch(const std::vector<const Trace*>& seen, Wrappers& found) : found_(found) {
    for (const Trace* trace : seen) {
      ++run_;
      known_.clear();
      for (const TracedCall& call : trace->calls) add(*trace, call);
    }
  }

  void operator()() {
    for (int layer = 0; layer < most_layers && find_layer(); ++layer) continue;
  }

 private:
  using Function = Wrappers::Function;
  struct Reached {
    std::vector<const Frame*> frames;
    const TracedSite* site = nullptr;
    uint64_t object = 0;
    int run = 0;  // objects are others in each
  };
  struct Use {
    std::set<Function> callers;
    std::set<std::pair<Function, int>> places;  // lines of the callers
    std::set<std::string> apis;
    std::map<std::pair<int, int>, std::set<uint64_t>> objects;  // by line of the function and run
  };

  void add(const Trace& trace, const TracedCall& call) {
    if (call.is_intervention || call.stack >= trace.stacks.size() ||
        call.site >= trace.sites.size() || trace.sites[call.site].name.api.empty())
      return;
    if (!known_.emplace(call.stack, call.site, call.object).second) return;
    calls_.push_back(
        {own_frames(trace.stacks[call.stack]), &trace.sites[call.site], call.object, run_});
    if (trace.sites[call.site].group == "clock") return;
    for (const Frame* frame : calls_.back().frames) do_more_.insert(function_of(*frame));
  }

  static Function function_of(const Frame& frame) { return {frame.function, frame.file}; }

  // Whether this made any difference.
  bool find_layer() {
    std::map<Function, Use> uses;
    beyond_.clear();
    for (const Reached& call : calls_) add_use(call, uses);
    const size_t before = found_.functions_.size();
    for (const auto& [function, use] : uses)
      if (is_wrapper(function, use)) {
        found_.functions_.insert(function);
      } else if (tells_time(function, use)) {
        found_.functions_.insert(function);
        clocks_.insert(function);
      }
    return found_.functions_.size() > before;
  }

  // The functions of a stack up to the first one that does more than call the next.
  void add_use(const Reached& call, std::map<Function, Use>& uses) {
    for (size_t i = 0; i + 1 < call.frames.size(); ++i) {
      Use& use = uses[function_of(*call.frames[i])];
      use.callers.insert(function_of(*call.frames[i + 1]));
      use.places.insert({function_of(*call.frames[i + 1]), call.frames[i + 1]->line});
      use.apis.insert(call.site->name.api);
      use.objects[{call.frames[i]->line, call.run}].insert(call.object);
      if (found_.contains(*call.frames[i]) || use.apis.size() < 2) continue;
      for (++i; i < call.frames.size(); ++i) beyond_.insert(function_of(*call.frames[i]));
    }
  }

  static bool is_for_several(const Use& use) {
    return std::ranges::all_of(use.objects,
                               [](const auto& line) { return line.second.size() >= several; });
  }

  bool is_among_wrappers(const Function& function, const Use& use) const {
    const auto is_elsewhere = [&](const Function& caller) {
      return caller.second != function.second;
    };
    const auto is_here = [&](const Function& wrapper) {
      return wrapper.second == function.second && !clocks_.contains(wrapper);
    };
    return !beyond_.contains(function) && std::ranges::all_of(use.callers, is_elsewhere) &&
           std::ranges::any_of(found_.functions_, is_here);
  }

  // Nothing else happens in a function that asks for the time on behalf of several places.
  bool tells_time(const Function& function, const Use& use) const {
    if (do_more_.contains(function)) return false;
    const auto is_known = [&](const Function& caller) {
      return found_.functions_.contains(caller);
    };
    return use.places.size() >= several || std::ranges::all_of(use.callers, is_known);
  }

  // A function that takes a lock and gives it back does something in between, for which it is
  // called; unless it does so for several objects. One that nobody but a wrapper calls is part of
  // it, and one that stands among wrappers for code elsewhere is one as well.
  bool is_wrapper(const Function& function, const Use& use) const {
    if (use.callers.size() >= several && is_for_several(use)) return true;
    if (use.callers.size() >= many && use.apis.size() == 1) return true;
    if (std::ranges::all_of(use.callers, [&](const Function& caller) {
          return found_.functions_.contains(caller) && caller.second == function.second;
        }))
      return true;
    return is_among_wrappers(function, use);
  }

  Wrappers& found_;
  std::vector<Reached> calls_;
  std::set<Function> beyond_;   // one that does more: whatever they do, it is not one thing
  std::set<Function> do_more_;  // than look at a clock
  std::set<Function> clocks_;   // do nothing else: what stands beside them may be anything
  std::set<std::tuple<uint32_t, uint32_t, uint64_t>> known_;  // of the run: once is enough
  int run_ = 0;
};

Wrappers::Wrappers(const std::vector<const Trace*>& seen, const std::vector<std::string>& named)
    : named_(named.begin(), named.end()) {
  WrapperSearch(seen, *this)();
}

bool Wrappers::contains(const Frame& frame) const {
  return functions_.contains({frame.function, frame.file}) ||
         std::ranges::any_of(named_, [&](const std::string& name) {
           return frame.function == name || frame.function.ends_with("::" + name);
         });
}

const Frame* caller_past(const Trace& trace, const TracedCall& call, const Wrappers& wrappers) {
  if (call.stack >= trace.stacks.size()) return nullptr;
  const std::vector<const Frame*> own = own_frames(trace.stacks[call.stack]);
  if (own.empty() || !wrappers.contains(*own.front())) return nullptr;
  const auto above =
      std::ranges::find_if(own, [&](const Frame* frame) { return !wrappers.contains(*frame); });
  return above == own.end() ? nullptr : *above;
}

std::vector<const Frame*> frames_above(const TracedStack& stack, const Wrappers& wrappers) {
  std::vector<const Frame*> own = own_frames(stack);
  const auto first =
      std::ranges::find_if(own, [&](const Frame* frame) { return !wrappers.contains(*frame); });
  if (first != own.end()) own.erase(own.begin(), first);
  return own;
}

namespace {

// Empty: not through a wrapper.
std::string caller_of_wrapper_that_started(const Trace& trace, const TracedThread& thread) {
  if (thread.spawn_stack >= trace.stacks.size()) return "";
  const TracedStack& stack = trace.stacks[thread.spawn_stack];
  const Wrappers wrappers({&trace});
  const std::vector<const Frame*> own = own_frames(stack), above = frames_above(stack, wrappers);
  if (own.empty() || above.size() == own.size()) return "";
  return fmt::format("{}:{}", base_name(above.front()->file), above.front()->line);
}

}  // namespace

// A thread is named after the place that started it.
std::string started_by(const Trace& trace, uint32_t thread) {
  if (thread >= trace.threads.size()) return "";
  const TracedThread& one = trace.threads[thread];
  if (one.parent >= trace.threads.size()) return "";
  const std::string& name = one.name.text;
  const std::string& parent = trace.threads[one.parent].name.text;
  const std::string place = name.substr(0, std::min(name.find('#'), name.find('~')));
  if (place == name) return parent;
  const std::string caller = caller_of_wrapper_that_started(trace, one);
  return fmt::format("{} at {}", parent, caller.empty() ? place : caller);
}

}  // namespace unflake
