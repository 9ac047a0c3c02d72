#include "search/reproduce/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "search/reproduce/shrink.h"
#include "util/paths.h"

namespace unflake {
namespace {

constexpr size_t most_watched = 200;  // in one run: every entry costs some microseconds
constexpr size_t most_functions = 1000;
constexpr size_t few_runs = 3;  // when there is more to watch than one run can, one look at each
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

bool has_company(const Trace& trace, const TracedCall& call) {
  for (uint32_t i = 0; i < trace.threads.size(); ++i)
    if (i != call.thread && is_alive(trace.threads[i], call.enter)) return true;
  return false;
}

// What stood on the stack of a call was being executed, however early it was entered.
std::set<std::string> functions_on_stack(const Trace& trace, const TracedCall& call) {
  std::set<std::string> names;
  if (call.stack >= trace.stacks.size()) return names;
  for (const TracedFrame& frame : trace.stacks[call.stack].frames)
    if (!frame.source.empty()) names.insert(frame.source.back().function);
  return names;
}

class FunctionFinder {
 public:
  FunctionFinder(Hunt& hunt, std::vector<Executed> executed, int runs)
      : hunt_(hunt), executed_(std::move(executed)), runs_(static_cast<size_t>(runs)) {
    for (const Executed& one : executed_) by_name_[to_string(one.entry)] = &one;
  }

  std::vector<ConcurrentFunction> operator()() {
    const size_t chunks = (executed_.size() + most_watched - 1) / most_watched;
    const size_t rounds = std::max(chunks, chunks == 1 || runs_ > few_runs ? runs_ : chunks);
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
    for (const TracedCall& call : trace.calls) {
      if (call.thread >= trace.threads.size() || !has_company(trace, call)) continue;
      const ThreadName& thread = trace.threads[call.thread].name;
      for (const std::string& function : functions_on_stack(trace, call))
        for (const Executed& executed : executed_)
          if (executed.function.name == function) add_entry(executed.entry, thread, call.enter);
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
    plan.calls = true;
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
    for (const TracedCall& call : trace.calls) {
      if (call.is_intervention || call.site >= trace.sites.size() ||
          call.thread >= trace.threads.size() || !has_company(trace, call))
        continue;
      const std::string name = to_string(trace.sites[call.site].name);
      if (by_name_.contains(name)) learn_entry(profile, name, trace.threads[call.thread].name);
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
  const size_t runs_;
  std::map<std::string, const Executed*> by_name_;
  std::map<std::string, ConcurrentFunction> found_;
  int looks_ = 0;
};

}  // namespace

std::vector<ConcurrentFunction> find_concurrent_functions(Hunt& hunt, int runs) {
  Plan plan = hunt.base_plan();
  plan.functions = true;
  const auto seen = hunt.look(plan);
  if (!seen || !seen->trace) return {};
  std::vector<Executed> executed = executed_functions(*seen->trace);
  hunt.runner().teller().say(
      fmt::format("the test executes {} functions of the project; watching which of them run "
                  "while another thread is alive",
                  executed.size()));
  if (executed.empty()) return {};
  return FunctionFinder(hunt, std::move(executed), runs)();
}

namespace {

using namespace std::chrono_literals;
using Places = std::vector<Place>;

constexpr Duration shortest_delay = 100ms;
constexpr Duration longest_tried = 51200ms;
constexpr size_t few = 8;  // places that are tried one by one, too
constexpr size_t most_lines = 400;
constexpr size_t most_threads_of_a_line = 3;

struct Late {
  Trial trial;
  Observation seen;
};

std::string words_for(const Places& places) {
  const Place& first = places.front();
  const std::string name = fmt::format("{} late at {}", told(first.thread), to_string(first.site));
  if (places.size() == 1) return name;
  return fmt::format("{} and {} places more", name, places.size() - 1);
}

std::optional<Late> fails_when_late(Hunt& hunt, const Places& places, Duration delay) {
  Trial trial = delay_all(hunt, places, delay, words_for(places));
  auto seen = hunt.observe(trial);
  if (!seen || !seen->hit) return std::nullopt;
  return Late{std::move(trial), std::move(*seen)};
}

bool has_room(const Hunt& hunt, const Places& places, Duration delay) {
  return delay * most_delays_in_a_thread(places) <= hunt.runner().left() / 4;
}

// Few places alone, then each thread with all of its places, then everything: delays everywhere at
// once shift all threads by the same and may change nothing.
std::vector<Places> groups_of(const std::vector<ConcurrentFunction>& functions) {
  Places all;
  for (const ConcurrentFunction& function : functions)
    all.insert(all.end(), function.entries.begin(), function.entries.end());
  std::map<std::string, Places> by_thread;
  for (const Place& place : all) by_thread[place.thread.text].push_back(place);
  std::vector<Places> groups;
  if (all.size() <= few)
    for (const Place& place : all) groups.push_back({place});
  for (const auto& [thread, places] : by_thread)
    if (places.size() > 1 || all.size() > few) groups.push_back(places);
  if (by_thread.size() > 1) groups.push_back(all);
  return groups;
}

class FunctionSearch {
 public:
  FunctionSearch(Hunt& hunt, std::vector<ConcurrentFunction> functions)
      : hunt_(hunt), functions_(std::move(functions)) {}

  // Lines right after the entries, and not after the longest delay of these: two accesses to
  // plain memory with no call between them race at lines only.
  void operator()() {
    const std::vector<Places> groups = groups_of(functions_);
    const Places lines = lines_to_try();
    const Duration longest = std::min(longest_tried, hunt_.options().delays.most);
    Duration next_for_lines{};  // there are many, and one doubling seldom changes anything
    for (Duration delay = shortest_delay; delay <= longest && !hunt_.over(); delay *= 2) {
      try_entries(groups, delay);
      if (delay >= next_for_lines) try_lines(lines, delay), next_for_lines = 4 * delay;
    }
  }

 private:
  void try_entries(const std::vector<Places>& groups, Duration delay) {
    hunt_.runner().teller().announce(
        fmt::format("their entries late by {}", format_duration(delay)));
    for (const Places& group : groups) {
      if (hunt_.over()) return;
      if (!has_room(hunt_, group, delay)) continue;
      if (auto late = fails_when_late(hunt_, group, delay)) settle(group, delay, *late);
    }
  }

  void try_lines(const Places& lines, Duration delay) {
    if (lines.empty() || hunt_.over()) return;
    hunt_.runner().teller().announce(fmt::format("{} lines of them late by {}, one per run",
                                                 lines.size(), format_duration(delay)));
    for (const Place& line : lines) {
      if (hunt_.over() || !has_room(hunt_, {line}, delay)) return;
      if (auto late = fails_when_late(hunt_, {line}, delay)) hunt_.confirm(late->trial, late->seen);
    }
  }

  void settle(Places places, Duration delay, Late late) {
    minimise_places(places, delay, late);
    if (places.size() > 1) replace_by_one(places, delay, late);
    if (hunt_.over()) return;
    if (places.size() == 1)
      if (auto line = last_failing_line(places.front(), delay))
        if (hunt_.over() || hunt_.confirm(line->trial, line->seen)) return;
    hunt_.confirm(late.trial, late.seen);
  }

  void minimise_places(Places& places, Duration delay, Late& late) {
    if (places.size() < 2) return;
    hunt_.runner().teller().say(
        fmt::format("fails with {} places late: taking away what is not needed", places.size()));
    const Places all = places;
    minimise(all.size(), [&](const std::vector<size_t>& numbers) {
      Places some;
      for (const size_t number : numbers) some.push_back(all[number]);
      auto smaller = fails_when_late(hunt_, some, delay);
      if (!smaller) return false;
      late = std::move(*smaller);
      places = some;
      return true;
    });
  }

  // What several delays add up to, a longer one may do alone.
  void replace_by_one(Places& places, Duration& delay, Late& late) {
    const Duration sum = delay * most_delays_in_a_thread(places);
    for (const Place& place : Places(places)) {
      auto alone = fails_when_late(hunt_, {place}, sum);
      if (!alone) continue;
      late = std::move(*alone);
      places = {place};
      delay = sum;
      return;
    }
  }

  // The boundary of FlakeSync's critical region, which begins at the entry. By halving, because it
  // only makes the place more telling: a line that is not reached leaves it less so, not wrong.
  std::optional<Late> last_failing_line(const Place& entry, Duration delay) {
    const ConcurrentFunction* function = function_of(entry);
    if (function == nullptr || function->lines.size() < 2) return std::nullopt;
    hunt_.runner().teller().say(
        fmt::format("{} late is enough: looking for the last line of it where it matters",
                    to_string(entry.site)));
    std::optional<Late> last;
    size_t first = 0, end = function->lines.size();
    while (first < end && !hunt_.over()) {
      const size_t middle = (first + end) / 2;
      auto late = fails_when_late(hunt_, {line_of(*function, middle, entry)}, delay);
      if (late)
        first = middle + 1, last = std::move(late);
      else
        end = middle;
    }
    return last;
  }

  const ConcurrentFunction* function_of(const Place& entry) const {
    for (const ConcurrentFunction& function : functions_)
      if (function.entries.front().site == entry.site) return &function;
    return nullptr;
  }

  static Place line_of(const ConcurrentFunction& function, size_t number, const Place& entry) {
    Place line = entry;
    line.site = SiteName();
    line.site.image = entry.site.image;
    line.site.file = function.file;
    line.site.line = function.lines[number];
    return line;
  }

  // How far a function is from the failing line: nothing when the line is in it.
  int distance_of(const ConcurrentFunction& function) const {
    const auto& failure = hunt_.options().wanted.failure;
    if (!failure || function.lines.empty() || base_name(failure->file) != base_name(function.file))
      return INT32_MAX;
    if (failure->line < function.lines.front()) return function.lines.front() - failure->line;
    return std::max(0, failure->line - function.lines.back());
  }

  // Each line in the thread that came first, then again in the next ones.
  Places lines_to_try() const {
    std::vector<const ConcurrentFunction*> functions;
    for (const ConcurrentFunction& function : functions_) functions.push_back(&function);
    std::ranges::stable_sort(functions, {}, [&](const auto* one) { return distance_of(*one); });
    Places lines;
    for (size_t thread = 0; thread < most_threads_of_a_line; ++thread)
      for (const ConcurrentFunction* function : functions)
        if (thread < function->entries.size()) add_lines(lines, *function, thread);
    if (lines.size() > most_lines) lines.resize(most_lines);
    return lines;
  }

  void add_lines(Places& lines, const ConcurrentFunction& function, size_t thread) const {
    const auto before = static_cast<std::ptrdiff_t>(lines.size());
    for (size_t i = 0; i < function.lines.size(); ++i)
      lines.push_back(line_of(function, i, function.entries[thread]));
    if (distance_of(function) != 0) return;
    const int failing = hunt_.options().wanted.failure->line;
    std::stable_sort(lines.begin() + before, lines.end(), [&](const Place& a, const Place& b) {
      return std::abs(a.site.line - failing) < std::abs(b.site.line - failing);
    });
  }

  Hunt& hunt_;
  const std::vector<ConcurrentFunction> functions_;
};

}  // namespace

void search_functions(Hunt& hunt) {
  std::vector<ConcurrentFunction> functions = find_concurrent_functions(hunt);
  if (hunt.over()) return;
  if (functions.empty()) {
    hunt.runner().teller().say(
        "no function of the project runs while another thread is alive: nothing to delay");
    return;
  }
  hunt.runner().teller().say(
      fmt::format("{} functions run while another thread is alive", functions.size()));
  FunctionSearch(hunt, std::move(functions))();
}

}  // namespace unflake
