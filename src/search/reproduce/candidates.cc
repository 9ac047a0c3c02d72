#include "search/reproduce/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "trace/happens_before.h"
#include "trace/names.h"
#include "util/paths.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Flips = Candidate::Flips;
using Position = Intervention::Position;
using Visits = Intervention::Visits;

constexpr size_t most_visits_looked_at = 64;  // of one place
constexpr size_t most_single_visits = 6;      // of one place
constexpr Duration most_per_run = 5s;         // more than this in delays of one place: halve them
constexpr Duration long_wait = 1ms;           // what a thread must have waited to count as woken

// A lock that is taken is not a sign that anybody else went on.
bool may_block(const TracedSite& site) {
  return may_wait(site) && !lets_one_in(site);
}

class CandidateFinder {
 public:
  CandidateFinder(const Trace& trace, const FailurePoint& failure, const DelayLimits& limits)
      : trace_(trace),
        failure_(failure),
        limits_(limits),
        order_(trace),
        wrappers_({&trace}),
        creations_(find_creations(trace)),
        end_(end_of(trace)) {
    if (failure.thread < trace.threads.size()) failing_ = failure.thread;
    by_thread_.resize(trace.threads.size());
    for (size_t i = 0; i < trace.calls.size(); ++i)
      if (is_known(trace.calls[i])) by_thread_[trace.calls[i].thread].push_back(i);
    place_.resize(trace.calls.size());
    for (const auto& calls : by_thread_)
      for (size_t i = 0; i < calls.size(); ++i) place_[calls[i]] = i;
    find_longest_times();
  }

  std::vector<Candidate> operator()() {
    for (uint32_t thread = 0; thread < by_thread_.size(); ++thread) {
      add_start(thread);
      add_places(thread);
    }
    return std::move(found_);
  }

 private:
  bool is_known(const TracedCall& call) const {
    return call.thread < trace_.threads.size() && call.site < trace_.sites.size() &&
           !call.is_intervention && !is_watched_line(trace_.sites[call.site].name);
  }

  const TracedCall& call(size_t number) const { return trace_.calls[number]; }
  const TracedSite& site_of(size_t number) const { return trace_.sites[call(number).site]; }
  const TracedThread& thread(uint32_t number) const { return trace_.threads[number]; }

  void add_start(uint32_t child) {
    const bool has_start = thread(child).name.text.find('#') != std::string::npos;
    if (creations_[child] == no_call || !has_start) return;
    const Duration at = thread(child).started;
    if (is_too_late(at)) return;
    Candidate candidate = candidate_for(child, site_of(creations_[child]).name, Position::start);
    candidate.at = at;
    candidate.flips = flips_of_start(child);
    candidate.starts_burst = true;
    candidate.why = fmt::format("{} begins late", told(thread(child).name));
    add(std::move(candidate), 1);
  }

  void add_places(uint32_t thread) {
    std::map<uint32_t, std::vector<size_t>> visited;
    std::vector<uint32_t> in_order;
    for (const size_t number : by_thread_[thread]) {
      if (is_too_late(call(number).enter)) continue;
      std::vector<size_t>& here = visited[call(number).site];
      if (here.empty()) in_order.push_back(call(number).site);
      if (here.size() < most_visits_looked_at) here.push_back(number);
    }
    for (const uint32_t site : in_order) add_place(thread, visited[site]);
  }

  void add_place(uint32_t thread, const std::vector<size_t>& calls) {
    const TracedSite& site = site_of(calls.front());
    add_visits(thread, calls, Position::before);
    if (may_block(site) || makes_thread(site) || makes_process(site))
      add_visits(thread, calls, Position::after);
  }

  void add_visits(uint32_t thread, const std::vector<size_t>& calls, Position position) {
    const TracedSite& site = site_of(calls.front());
    Candidate all = candidate_for(thread, site.name, position);
    describe(all, calls, position);
    add(all, calls.size());
    if (calls.size() < 2) return;
    size_t added = 0;
    std::set<std::string> callers;  // of a wrapper: each is a place of its own
    for (size_t nth = 0; nth < calls.size() && added < most_single_visits; ++nth) {
      const bool last = nth + 1 == calls.size();
      const Frame* caller = caller_past(trace_, call(calls[nth]), wrappers_);
      const bool is_first_of_caller = caller != nullptr && callers.insert(text_of(*caller)).second;
      if (!begins_burst(calls[nth], position) && !last && !is_first_of_caller) continue;
      Candidate one = candidate_for(thread, site.name, position);
      describe(one, {calls[nth]}, position);
      one.single_visit = true;
      one.delay.visits = Visits::only_nth;
      one.delay.nth = nth + 1;
      one.why += fmt::format(", at visit {}", nth + 1);
      if (caller != nullptr) one.why += " (for " + text_of(*caller) + ")";
      add(std::move(one), 1);
      ++added;
    }
  }

  static std::string text_of(const Frame& frame) {
    return fmt::format("{} {}:{}", frame.function, base_name(frame.file), frame.line);
  }

  Candidate candidate_for(uint32_t number, const SiteName& site, Position position) const {
    Candidate candidate;
    candidate.thread = number;
    candidate.delay.site = site;
    candidate.delay.position = position;
    candidate.delay.threads = Intervention::Threads::named;
    candidate.delay.thread = thread(number).name;
    candidate.delay.executable = executable_of(trace_, thread(number));
    candidate.thread_class = thread_class_of(thread(number).name.text);
    return candidate;
  }

  void describe(Candidate& candidate, const std::vector<size_t>& calls, Position position) const {
    const bool after = position == Position::after;
    const size_t first = calls.front();
    candidate.at = after ? call(first).exit : call(first).enter;
    for (const size_t number : calls) {
      candidate.flips = std::max(candidate.flips, flips_of(number, after));
      candidate.starts_burst = candidate.starts_burst || begins_burst(number, position);
    }
    candidate.why = fmt::format("{} late {} {}", told(thread(candidate.thread).name),
                                after ? "after" : "before", to_string(candidate.delay.site));
  }

  bool begins_burst(size_t number, Position position) const {
    const auto& calls = by_thread_[call(number).thread];
    const TracedSite& site = site_of(number);
    if (position == Position::after)
      return makes_thread(site) || makes_process(site) ||
             call(number).exit - call(number).enter >= long_wait;
    return number == calls.front();
  }

  bool is_too_late(Duration at) const { return failure_.thread != no_index && at > failure_.at; }

  Flips flips_of_start(uint32_t child) const {
    const auto& calls = by_thread_[child];
    if (!calls.empty()) return flips_of(calls.front(), false);
    return child == failing_ ? Flips::others : Flips::failure_point;
  }

  // Whether another thread can go on to where it was later without this call.
  Flips flips_of(size_t number, bool after) const {
    const uint32_t late = call(number).thread;
    const Duration at = after ? call(number).exit : call(number).enter;
    const size_t needed = after ? next_of(number) : number;
    Flips flips = Flips::own_time;
    for (uint32_t other = 0; other < by_thread_.size(); ++other) {
      if (other == late || !passes(other, at, needed)) continue;
      const Flips seen = late == failing_    ? Flips::others
                         : other == failing_ ? Flips::failure_point
                                             : Flips::third_parties;
      flips = std::max(flips, seen);
    }
    return flips;
  }

  // The next thing that the thread does; the number of calls when there is none.
  size_t next_of(size_t number) const {
    const auto& calls = by_thread_[call(number).thread];
    const size_t next = place_[number] + 1;
    return next == calls.size() ? trace_.calls.size() : calls[next];
  }

  bool passes(uint32_t other, Duration at, size_t needed) const {
    if (other == failing_ && failure_.thread != no_index) return reaches_failure(at, needed);
    const auto& calls = by_thread_[other];
    if (calls.empty()) return thread(other).ended == Duration{} || thread(other).ended > at;
    // What follows a call needs all that the call needs, so that the first one decides.
    const auto next =
        std::ranges::upper_bound(calls, at, {}, [&](size_t number) { return call(number).exit; });
    return next != calls.end() && can_end_without(needed, *next);
  }

  bool reaches_failure(Duration at, size_t needed) const {
    if (failure_.at < at) return false;
    const auto& calls = by_thread_[failing_];
    const auto next = std::ranges::upper_bound(calls, failure_.at, {},
                                               [&](size_t number) { return call(number).exit; });
    return next == calls.begin() || can_end_without(needed, *std::prev(next));
  }

  bool can_end_without(size_t needed, size_t number) const {
    return needed == trace_.calls.size() || !order_.before_end(needed, number);
  }

  void add(Candidate candidate, size_t visits) {
    const Duration plain = outlast(candidate, false), full = outlast(candidate, true);
    Candidate longer = candidate;
    set_delay(candidate, full <= limits_.cheap ? full : plain, visits);
    found_.push_back(std::move(candidate));
    if (full <= limits_.cheap || full == plain) return;
    longer.is_long = true;
    set_delay(longer, full, visits);
    longer.why += ", for longer than any time-out";
    found_.push_back(std::move(longer));
  }

  void set_delay(Candidate& candidate, Duration delay, size_t visits) const {
    candidate.delay.duration = delay;
    if (!candidate.single_visit && visits > 1 &&
        delay * static_cast<int64_t>(visits) > most_per_run)
      candidate.delay.visits = Visits::halving;
  }

  // Long enough for everything to pass that the run did after this point, sleeps and time-outs
  // included; with a margin, because all of it may take longer next time.
  Duration outlast(const Candidate& candidate, bool unused_timeouts) const {
    const bool is_failing = candidate.thread == failing_;
    const Duration horizon = is_failing || failure_.thread == no_index ? end_ : failure_.at;
    const Duration asked = unused_timeouts ? longest_asked_ : longest_taken_;
    const Duration delay = std::max(horizon - candidate.at, asked) * 3 / 2 + limits_.least;
    return std::min(Duration(delay.count() / 1000 * 1000), limits_.most);
  }

  void find_longest_times() {
    for (const auto& calls : by_thread_)
      for (const size_t number : calls) {
        longest_taken_ = std::max(longest_taken_, asked_time(number, false));
        longest_asked_ = std::max(longest_asked_, asked_time(number, true));
      }
  }

  // What a sleep or a timed wait asked for; a time-out that never came about only on request, and
  // none that no delay may outlast.
  Duration asked_time(size_t number, bool unused_timeouts) const {
    const TracedCall& asked = call(number);
    if (!takes_time(site_of(number)) || asked.value <= 0) return {};
    const auto value = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(asked.value));
    if (value * 5 / 4 > limits_.most) return {};
    const bool ran_out = asked.timed_out || is_sleep(site_of(number));
    return ran_out || unused_timeouts ? value : Duration{};
  }

  const Trace& trace_;
  const FailurePoint& failure_;
  const DelayLimits& limits_;
  const HappensBefore order_;
  const Wrappers wrappers_;
  const std::vector<size_t> creations_;  // per thread
  const Duration end_;
  uint32_t failing_ = 0;                        // the first thread, when it is not known
  std::vector<std::vector<size_t>> by_thread_;  // numbers of calls
  std::vector<size_t> place_;                   // of a call in its thread
  Duration longest_taken_{}, longest_asked_{};  // by sleeps and time-outs
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<Candidate> find_candidates(const Trace& trace, const FailurePoint& failure,
                                       const DelayLimits& limits) {
  std::vector<Candidate> found = CandidateFinder(trace, failure, limits)();
  std::vector<Candidate> of_classes = class_candidates(found);
  std::ranges::move(of_classes, std::back_inserter(found));
  return found;
}

namespace {

using Kind = Candidate::Kind;
using Position = Intervention::Position;

std::string where(const Candidate& candidate) {
  if (candidate.delay.position == Position::start) return "from the start";
  return (candidate.delay.position == Position::after ? "after " : "before ") +
         to_string(candidate.delay.site);
}

// Of "thread 2 of 4 that run `Pool::work`" what holds for all of them.
std::string role_of_class(const std::string& role) {
  const size_t of = role.find(" of ");
  return role.starts_with("thread ") && of != std::string::npos ? role.substr(of + 4) : "";
}

Candidate of_class(const Candidate& member, Kind kind) {
  Candidate some = member;
  some.kind = kind;
  some.delay.threads = Intervention::Threads::in_class;
  some.delay.thread.text = member.thread_class + "#*";
  some.delay.thread.role = role_of_class(member.delay.thread.role);
  some.why = fmt::format("{} of {} late {}", kind == Kind::first_of_class ? "the first" : "all",
                         told(some.delay.thread), where(member));
  return some;
}

}  // namespace

std::vector<Intervention> for_its_class(const Intervention& delay) {
  Intervention all = delay;
  all.threads = Intervention::Threads::in_class;
  all.thread.text = thread_class_of(delay.thread.text) + "#*";
  all.thread.role = role_of_class(delay.thread.role);
  if (delay.position == Position::start) return {all};
  Intervention first = all;
  first.visits = Intervention::Visits::only_nth;
  first.nth = 1;
  return {first, all};
}

// Which worker of a pool gets a job differs from run to run, so that a delay for one of them may
// meet another job. "Whoever comes there first" and "all of them" do not depend on it.
std::vector<Candidate> class_candidates(const std::vector<Candidate>& candidates) {
  std::map<std::string, std::set<uint32_t>> members;
  for (const Candidate& candidate : candidates)
    if (candidate.delay.thread.text != candidate.thread_class)  // `main` has no class
      members[candidate.thread_class].insert(candidate.thread);
  std::vector<Candidate> found;
  std::set<std::string> seen;
  for (const Candidate& candidate : candidates) {
    const std::string& name = candidate.thread_class;
    if (candidate.single_visit || candidate.is_long || members[name].size() < 2) continue;
    if (!seen.insert(name + where(candidate)).second) continue;
    if (candidate.delay.position != Position::start) {  // who begins first is always the same one
      Candidate first = of_class(candidate, Kind::first_of_class);
      first.delay.visits = Intervention::Visits::only_nth;
      first.delay.nth = 1;
      found.push_back(std::move(first));
    }
    found.push_back(of_class(candidate, Kind::all_of_class));
  }
  return found;
}

namespace {

std::string what_is_late(const Candidate& candidate) {
  return fmt::format("{} {} {} {}", candidate.thread_class, where(candidate),
                     candidate.single_visit ? candidate.delay.nth : 0, candidate.is_long);
}

}  // namespace

size_t leave_representatives(std::vector<Candidate>& candidates, uint32_t failing_thread) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t number) {
    const Candidate& one = candidates[number];
    return std::pair(one.thread != failing_thread, -static_cast<int>(one.flips));
  });
  std::map<std::string, size_t> alike;
  std::vector<bool> is_left_out(candidates.size());
  for (const size_t number : order) {
    const Candidate& one = candidates[number];
    is_left_out[number] =
        one.kind == Candidate::Kind::thread && ++alike[what_is_late(one)] > most_representatives;
  }
  size_t number = 0;
  return std::erase_if(candidates, [&](const Candidate&) { return is_left_out[number++]; });
}

namespace {

struct NamedOrder {
  std::string_view name;
  Order order;
};

constexpr std::array<NamedOrder, 4> orders = {{{"turns", Order::turns},
                                               {"nearest", Order::nearest},
                                               {"appearance", Order::appearance},
                                               {"random", Order::random}}};

// How often this site has come before in the list, whoever the thread was.
using Repeats = std::map<std::string, int>;

int repeats_of(const Candidate& candidate, Repeats& repeats) {
  const auto& delay = candidate.delay;
  return repeats[to_string(delay.site) + "/" + std::to_string(static_cast<int>(delay.position))]++;
}

// Worth trying at all before the others: it flips something, with one delay for all visits that no
// unneeded time-out makes long.
int stage_of(const Candidate& candidate) {
  return (candidate.flips == Candidate::Flips::nothing) * 4 + candidate.is_long * 2 +
         candidate.single_visit;
}

void sort_within_threads(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tuple(stage_of(a), -static_cast<int>(a.flips), !a.starts_burst, a.kind, a.at) <
           std::tuple(stage_of(b), -static_cast<int>(b.flips), !b.starts_burst, b.kind, b.at);
  });
}

void take_turns(std::vector<Candidate>& candidates) {
  sort_within_threads(candidates);
  struct Key {
    int stage, repeats, turn, flips;
    auto operator<=>(const Key&) const = default;
  };
  Repeats repeats;
  std::map<std::tuple<int, int, std::string>, int> turns;  // of a class of threads, in a stage
  std::vector<std::pair<Key, size_t>> keys;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const int stage = stage_of(candidate);
    const int repeated = candidate.single_visit ? 0 : repeats_of(candidate, repeats);
    const int turn = turns[{stage, repeated, candidate.thread_class}]++;
    keys.push_back({{stage, repeated, turn, -static_cast<int>(candidate.flips)}, i});
  }
  std::ranges::sort(keys);
  std::vector<Candidate> arranged;
  for (const auto& [key, i] : keys) arranged.push_back(std::move(candidates[i]));
  candidates = std::move(arranged);
}

}  // namespace

std::optional<Order> order_from(std::string_view name) {
  for (const NamedOrder& known : orders)
    if (known.name == name) return known.order;
  return std::nullopt;
}

std::string_view to_string(Order order) {
  return std::ranges::find(orders, order, &NamedOrder::order)->name;
}

void arrange(std::vector<Candidate>& candidates, Order order, uint64_t seed) {
  if (order == Order::turns) take_turns(candidates);
  if (order == Order::nearest) std::ranges::stable_sort(candidates, std::greater{}, &Candidate::at);
  if (order == Order::appearance) std::ranges::stable_sort(candidates, {}, &Candidate::at);
  if (order == Order::random) {
    std::mt19937_64 dice(seed);
    std::ranges::shuffle(candidates, dice);
  }
}

bool is_left_to_chance(const Intervention& delay, const Trace& trace) {
  const std::string pool = thread_class_of(delay.thread.text);
  const bool is_main = pool == delay.thread.text;  // of whatever process
  if (is_main || delay.position == Intervention::Position::start) return false;
  const auto threads = std::ranges::count_if(trace.threads, [&](const TracedThread& thread) {
    return thread_class_of(thread.name.text) == pool;
  });
  return threads > 1 && (delay.threads == Intervention::Threads::named ||
                         delay.visits == Intervention::Visits::only_nth);
}

}  // namespace unflake
