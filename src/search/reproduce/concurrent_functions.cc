#include "search/reproduce/concurrent_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "util/base_name.h"

namespace unflake {
namespace {

constexpr size_t most_watched = 200;  // in one run: every entry costs some microseconds
constexpr size_t most_functions = 1000;
constexpr int runs_for_all = 3;
constexpr int most_looks = 16;

struct Executed {
  SiteName entry;
  TracedFunction function;
};

SiteName entry_of(const Trace& trace, const TracedFunction& function) {
  SiteName entry;
  entry.function = function.name;
  const uint32_t own = trace.processes.empty() ? no_index : trace.processes.front().executable;
  if (function.image != own && function.image < trace.images.size())
    entry.image = base_name(trace.images[function.image].path);
  return entry;
}

std::vector<Executed> executed_functions(const Trace& trace) {
  std::map<SiteName, Executed> executed;
  for (const TracedFunction& function : trace.functions) {
    if (function.name.empty() || executed.size() >= most_functions) continue;
    const SiteName entry = entry_of(trace, function);
    executed.try_emplace(entry, Executed{entry, function});
  }
  std::vector<Executed> all;
  for (auto& [entry, function] : executed) all.push_back(std::move(function));
  return all;
}

bool is_alive(const TracedThread& thread, Duration at) {
  return thread.started <= at && (thread.ended == Duration{} || thread.ended > at);
}

bool has_company(const Trace& trace, const TracedEvent& event) {
  for (uint32_t i = 0; i < trace.threads.size(); ++i)
    if (i != event.thread && is_alive(trace.threads[i], event.enter)) return true;
  return false;
}

// What stood on the stack of a call was being executed, however early it was entered.
std::set<std::string> functions_on_stack(const Trace& trace, const TracedEvent& event) {
  std::set<std::string> names;
  if (event.stack >= trace.stacks.size()) return names;
  for (const TracedFrame& frame : trace.stacks[event.stack].frames)
    if (!frame.source.empty()) names.insert(frame.source.back().function);
  return names;
}

class Finder {
 public:
  Finder(Hunt& hunt, std::vector<Executed> executed) : hunt_(hunt), executed_(std::move(executed)) {
    for (const Executed& one : executed_) by_name_[to_string(one.entry)] = &one;
  }

  std::vector<ConcurrentFunction> operator()() {
    const size_t chunks = (executed_.size() + most_watched - 1) / most_watched;
    const size_t rounds = chunks == 1 ? runs_for_all : chunks;
    for (size_t round = 0; round < rounds; ++round) {
      const size_t first = round % chunks * most_watched;
      watch(first, std::min(executed_.size(), first + most_watched));
    }
    for (const ExperimentResult& run : hunt_.profile().runs)
      if (run.trace) learn_stacks(*run.trace);
    return in_order();
  }

 private:
  void learn_stacks(const Trace& trace) {
    for (const TracedEvent& event : trace.events) {
      if (event.thread >= trace.threads.size() || !has_company(trace, event)) continue;
      const ThreadName& thread = trace.threads[event.thread].name;
      for (const std::string& function : functions_on_stack(trace, event))
        for (const Executed& executed : executed_)
          if (executed.function.name == function) add_entry(executed.entry, thread, event.enter);
    }
  }

  void add_entry(const SiteName& site, const ThreadName& thread, Duration first) {
    ConcurrentFunction& function = found_[to_string(site)];
    const auto is_same = [&](const Place& place) { return place.thread == thread; };
    if (std::ranges::any_of(function.entries, is_same)) return;
    Place place;
    place.site = site;
    place.thread = thread;
    place.group = "probe";
    place.visits = 1;
    place.first = first;
    function.entries.push_back(std::move(place));
  }

  // A function that cannot be watched must not take the others with it.
  void watch(size_t first, size_t end) {
    if (first == end || ++looks_ > most_looks) return;
    Plan plan = hunt_.base_plan();
    plan.events = true;
    for (size_t i = first; i < end; ++i) {
      Intervention watched;
      watched.action = Intervention::Action::watch;
      watched.site = executed_[i].entry;
      plan.interventions.push_back(watched);
    }
    const auto seen = hunt_.look(plan);
    if (!seen) return;
    if (seen->process.end != ProcessResult::End::not_started) {
      if (seen->trace) learn(*seen->trace);
    } else if (end - first > 1) {
      watch(first, first + (end - first) / 2);
      watch(first + (end - first) / 2, end);
    }
  }

  void learn(const Trace& trace) {
    Profile profile;
    ExperimentResult run;
    run.trace = std::make_shared<Trace>(trace);
    add(profile, run);
    for (const TracedEvent& event : trace.events) {
      if (event.is_intervention || event.site >= trace.sites.size() ||
          event.thread >= trace.threads.size() || !has_company(trace, event))
        continue;
      const std::string name = to_string(trace.sites[event.site].name);
      if (by_name_.contains(name)) learn_entry(profile, name, trace.threads[event.thread].name);
    }
  }

  void learn_entry(const Profile& profile, const std::string& name, const ThreadName& thread) {
    ConcurrentFunction& function = found_[name];
    const auto is_same = [&](const Place& place) {
      return place.thread == thread && to_string(place.site) == name;
    };
    if (std::ranges::any_of(function.entries, is_same)) return;
    const auto place = std::ranges::find_if(profile.places, is_same);
    if (place != profile.places.end()) function.entries.push_back(*place);
  }

  std::vector<ConcurrentFunction> in_order() {
    std::vector<ConcurrentFunction> all;
    for (auto& [name, function] : found_) {
      if (function.entries.empty()) continue;
      function.file = by_name_[name]->function.file;
      function.lines = by_name_[name]->function.lines;
      std::ranges::stable_sort(function.entries, {}, &Place::first);
      all.push_back(std::move(function));
    }
    std::ranges::stable_sort(all, {}, [](const auto& one) { return one.entries.front().first; });
    return all;
  }

  Hunt& hunt_;
  const std::vector<Executed> executed_;
  std::map<std::string, const Executed*> by_name_;
  std::map<std::string, ConcurrentFunction> found_;
  int looks_ = 0;
};

}  // namespace

std::vector<ConcurrentFunction> find_concurrent_functions(Hunt& hunt) {
  Plan plan = hunt.base_plan();
  plan.functions = true;
  const auto seen = hunt.look(plan);
  if (!seen || !seen->trace) return {};
  std::vector<Executed> executed = executed_functions(*seen->trace);
  hunt.say(
      fmt::format("the test executes {} functions of the project; watching which of them run "
                  "while another thread is alive",
                  executed.size()));
  if (executed.empty()) return {};
  return Finder(hunt, std::move(executed))();
}

}  // namespace unflake
