#include "search/schedule/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace unflake {
namespace {

constexpr size_t most_sentences = 5;
constexpr size_t most_refinements = 16;
constexpr size_t most_single_orders = 24;
constexpr int draws_that_must_fail = 40;
constexpr size_t most_orders = 16;

using Visits = std::map<std::pair<ThreadNumber, uint32_t>, uint64_t>;

// Of a site, by a thread: the same in all runs.
struct Visit {
  ThreadNumber thread = 0;
  SiteName site;
  uint64_t nth = 0;
  auto operator<=>(const Visit&) const = default;
};

const SiteName* site_of(const Trace& trace, const ThreadAccess& access) {
  return access.site < trace.sites.size() ? &trace.sites[access.site].name : nullptr;
}

// An instruction is named by its function; people look for a line.
std::string site_text(const Trace& trace, const SiteName& name) {
  const auto site = std::ranges::find(trace.sites, name, &TracedSite::name);
  const bool has_line = !name.file.empty() || site == trace.sites.end() || site->location.empty();
  return has_line ? to_string(name) : site->location;
}

// The places of a run's accesses in a run that is equal but for the order of independent accesses,
// with as few exchanges as a greedy choice gives: a thread goes on until it has to wait for what
// another one does first.
class FewerSwitches {
 public:
  explicit FewerSwitches(const ControlledRun& run)
      : accesses_(executed_accesses(run)), earlier_(accesses_.size()) {
    add_conflicts();
    add_enablers(run);
  }

  std::vector<ThreadNumber> operator()() {
    std::map<ThreadNumber, std::vector<size_t>> of_thread;
    for (size_t i = 0; i < accesses_.size(); ++i) of_thread[accesses_[i].thread].push_back(i);
    std::map<ThreadNumber, size_t> at;
    std::vector<ThreadNumber> order;
    std::vector<bool> done(accesses_.size());
    const auto next_of = [&](ThreadNumber thread) -> std::optional<size_t> {
      const auto& own = of_thread[thread];
      const size_t place = at[thread];
      if (place >= own.size()) return std::nullopt;
      const bool ready =
          std::ranges::all_of(earlier_[own[place]], [&](size_t i) { return done[i]; });
      return ready ? std::optional(own[place]) : std::nullopt;
    };
    ThreadNumber running = accesses_.empty() ? 0 : accesses_.front().thread;
    while (order.size() < accesses_.size()) {
      std::optional<size_t> next = next_of(running);
      for (const auto& [thread, own] : of_thread) {
        if (next) break;
        next = next_of(thread);
      }
      if (!next) return {};
      running = accesses_[*next].thread;
      done[*next] = true;
      ++at[running];
      order.push_back(running);
    }
    return order;
  }

 private:
  void add_conflicts() {
    std::map<uint64_t, std::vector<size_t>> of_object;  // since the last one that wrote, and it
    std::vector<size_t> touching;
    for (size_t i = 0; i < accesses_.size(); ++i) {
      const ThreadAccess& access = accesses_[i];
      if (access.object == no_object) continue;
      if (access.object == any_object) {
        earlier_[i] = touching;
        of_object.clear();
        anything_ = i;
      } else {
        add_conflicts_of(i, of_object[shared_part(access.object)]);
      }
      touching.push_back(i);
    }
  }

  void add_conflicts_of(size_t i, std::vector<size_t>& others) {
    if (anything_) earlier_[i].push_back(*anything_);
    for (const size_t other : others)
      if (is_conflict(accesses_[i], accesses_[other])) earlier_[i].push_back(other);
    if (accesses_[i].writes) others.clear();
    others.push_back(i);
  }

  // A thread that had to wait could go on because of what was done at the last point at which it
  // could not.
  void add_enablers(const ControlledRun& run) {
    std::map<ThreadNumber, size_t> last_blocked;
    std::set<ThreadNumber> threads;
    for (const ThreadAccess& access : accesses_) threads.insert(access.thread);
    for (size_t i = 0; i < run.points.size(); ++i) {
      const SwitchPoint& point = run.points[i];
      if (const auto blocked = last_blocked.find(point.chosen); blocked != last_blocked.end())
        earlier_[i].push_back(blocked->second);
      for (const ThreadNumber thread : threads)
        if (!std::ranges::binary_search(point.enabled, thread)) last_blocked[thread] = i;
      last_blocked.erase(point.chosen);
    }
  }

  std::vector<ThreadAccess> accesses_;
  std::vector<std::vector<size_t>> earlier_;  // what has to come before each
  std::optional<size_t> anything_;
};

uint64_t visits_before(const std::vector<ThreadAccess>& accesses, size_t end,
                       const ThreadAccess& like) {
  return static_cast<uint64_t>(std::count_if(
      accesses.begin(), accesses.begin() + static_cast<ptrdiff_t>(end),
      [&](const ThreadAccess& one) { return one.thread == like.thread && one.site == like.site; }));
}

std::map<Visit, size_t> places_in(const ScheduleRun& run) {
  std::map<Visit, size_t> places;
  Visits visits;
  for (const ThreadAccess& access : executed_accesses(run.controlled())) {
    const uint64_t nth = ++visits[{access.thread, access.site}];
    if (const SiteName* site = site_of(run.trace(), access))
      places.emplace(Visit{access.thread, *site, nth}, places.size());
  }
  return places;
}

OrderConstraint order_of_visits(const Visit& waits, const Visit& awaited) {
  return {waits.thread, waits.site, waits.nth, awaited.thread, awaited.site, awaited.nth};
}

uint64_t count(const Visits& visits, ThreadNumber thread, uint32_t site) {
  const auto found = visits.find({thread, site});
  return found == visits.end() ? 0 : found->second;
}

uint64_t passed(const Trace& trace, const Visits& visits, const OrderConstraint& order) {
  for (uint32_t site = 0; site < trace.sites.size(); ++site)
    if (trace.sites[site].name == order.other_site) return count(visits, order.other, site);
  return 0;
}

std::optional<ThreadNumber> awaited_by(const Trace& trace, const ThreadAccess& access,
                                       const Visits& visits,
                                       const std::vector<OrderConstraint>& orders) {
  const SiteName* site = site_of(trace, access);
  if (site == nullptr) return std::nullopt;
  for (const OrderConstraint& order : orders) {
    if (order.thread != access.thread || order.site != *site) continue;
    if (count(visits, access.thread, access.site) + 1 != order.visit) continue;
    if (passed(trace, visits, order) < order.other_visit) return order.other;
  }
  return std::nullopt;
}

std::optional<ThreadNumber> instead_of(const Trace& trace, const SwitchPoint& point,
                                       const PendingAccesses& pending, const Visits& visits,
                                       const std::vector<OrderConstraint>& orders,
                                       ThreadNumber awaited) {
  std::optional<ThreadNumber> instead;
  for (const ThreadNumber thread : point.enabled) {
    if (thread == point.chosen) continue;
    if (awaited_by(trace, pending.of(thread), visits, orders)) continue;
    if (thread == awaited) return thread;
    if (!instead) instead = thread;
  }
  return instead;
}

// The first point at which a thread went on that had to wait, and who goes on instead.
std::optional<Decision> first_correction(const ScheduleRun& run,
                                         const std::vector<OrderConstraint>& orders) {
  Visits visits;
  PendingAccesses pending;
  for (size_t i = 0; i < run.controlled().points.size(); ++i) {
    const SwitchPoint& point = run.controlled().points[i];
    pending.arrive(point);
    const auto awaited = awaited_by(run.trace(), pending.of(point.chosen), visits, orders);
    if (awaited)
      if (const auto instead = instead_of(run.trace(), point, pending, visits, orders, *awaited))
        return Decision{i, *instead};
    const ThreadAccess done = pending.of(point.chosen);
    ++visits[{done.thread, done.site}];
  }
  return std::nullopt;
}

// What has to happen, as a person would say it.
class OrderWords {
 public:
  explicit OrderWords(const ScheduleRun& run)
      : run_(run), accesses_(executed_accesses(run.controlled())) {}

  std::vector<std::string> operator()(const std::vector<OrderConstraint>& orders) const {
    std::vector<std::string> all;
    for (const OrderConstraint& order : orders) all.push_back(sentence(order));
    if (all.empty()) all = switch_sentences();
    return all;
  }

 private:
  // What comes first is often something between two accesses of the thread that waits.
  std::string sentence(const OrderConstraint& order) const {
    const Trace& trace = run_.trace();
    const std::optional<size_t> first = find(order.other, order.other_site, order.other_visit);
    const std::string other = thread_text(trace, order.other);
    const std::string waiting = thread_text(trace, order.thread);
    const std::string then = place_text(order.site, writes_at(order));
    if (!first) return fmt::format("{} waits before its {}", waiting, then);
    const std::string what = place_text(order.other_site, accesses_[*first].writes);
    for (size_t i = *first; i-- > 0;) {
      const ThreadAccess& before = accesses_[i];
      if (before.thread != order.thread || !is_conflict(before, accesses_[*first])) continue;
      const SiteName* site = site_of(trace, before);
      if (site == nullptr) continue;
      return fmt::format("the {} by {} comes between the {} and the {} by {}", what, other,
                         place_text(*site, before.writes), then, waiting);
    }
    return fmt::format("the {} by {} comes before the {} by {}", what, other, then, waiting);
  }

  std::optional<size_t> find(ThreadNumber thread, const SiteName& name, uint64_t visit) const {
    for (size_t i = 0; i < accesses_.size(); ++i) {
      const SiteName* site = site_of(run_.trace(), accesses_[i]);
      if (accesses_[i].thread == thread && site != nullptr && *site == name && --visit == 0)
        return i;
    }
    return std::nullopt;
  }

  // Of what the thread does there, or was about to do.
  bool writes_at(const OrderConstraint& order) const {
    uint64_t visit = 0;
    for (const SwitchPoint& point : run_.controlled().points)
      if (point.thread == order.thread && point.site < run_.trace().sites.size() &&
          run_.trace().sites[point.site].name == order.site && ++visit == order.visit)
        return point.writes;
    return true;
  }

  std::string place_text(const SiteName& site, bool writes) const {
    if (!site.api.empty()) return "call at " + to_string(site);
    return fmt::format("{} at {}", writes ? "write" : "read", site_text(run_.trace(), site));
  }

  std::vector<std::string> switch_sentences() const {
    std::vector<std::string> all;
    const Trace& trace = run_.trace();
    for (const SwitchPoint& point : run_.controlled().points) {
      if (point.chosen == undisturbed_choice(point)) continue;
      const std::string to = thread_text(trace, point.chosen);
      const std::string from = thread_text(trace, undisturbed_choice(point));
      all.push_back(point.site < trace.sites.size()
                        ? fmt::format("{} goes on before {} when {} gets to {}", to, from,
                                      thread_text(trace, point.thread),
                                      to_string(trace.sites[point.site].name))
                        : fmt::format("{} goes on before {}", to, from));
    }
    if (all.empty() && run_.schedule.stall > Duration{}) return {};
    if (all.empty()) return {"no thread has to be interrupted for it"};
    if (all.size() > most_sentences)
      return {fmt::format("threads are exchanged {} times; fewer did not do", all.size())};
    return all;
  }

  const ScheduleRun& run_;
  const std::vector<ThreadAccess> accesses_;
};

}  // namespace

std::vector<std::string> order_sentences(const ScheduleRun& run,
                                         const std::vector<OrderConstraint>& orders) {
  return OrderWords(run)(orders);
}

namespace {

class Reducer {
 public:
  Reducer(const RunSchedule& run, const ScheduleRun& failing, uint64_t most_runs)
      : run_(run), best_(failing), wanted_(failing.failure_id()), left_(most_runs) {}

  Reduction operator()() {
    straighten();
    drop_switches();
    std::vector<OrderConstraint> orders = needed(orders_around_switches());
    Reduction reduction{best_, switches_of(best_.controlled()), std::move(orders), {}, {}};
    reduction.sentences = order_sentences(best_, reduction.orders);
    reduction.enough = enough_for_all(reduction.orders);
    return reduction;
  }

 private:
  std::optional<ScheduleRun> try_run(const std::vector<Decision>& decisions) {
    return try_run(base(), decisions);
  }
  std::optional<ScheduleRun> try_run(Schedule schedule, const std::vector<Decision>& decisions) {
    if (left_ == 0) return std::nullopt;
    --left_;
    schedule.decisions = decisions;
    return run_(schedule);
  }

  Schedule base() const {
    Schedule schedule;
    schedule.seed = best_.schedule.seed;  // the test's own random numbers come from it
    schedule.stall = best_.schedule.stall;
    schedule.accesses = best_.schedule.accesses;
    schedule.hot_accesses = best_.schedule.hot_accesses;
    return schedule;
  }

  bool is_wanted(const std::optional<ScheduleRun>& run) const {
    return run && run->failed() && run->failure_id() == wanted_;
  }

  bool take_if_wanted(std::optional<ScheduleRun> run) {
    if (!is_wanted(run)) return false;
    best_ = std::move(*run);
    return true;
  }

  // An equal run with fewer exchanges costs one run, whatever the first one looks like.
  void straighten() {
    if (best_.controlled().points.size() < best_.controlled().points_in_all) return;
    const std::vector<ThreadNumber> order = FewerSwitches(best_.controlled())();
    std::vector<Decision> decisions;
    for (size_t i = 0; i < order.size(); ++i)
      if (i == 0 || order[i] != order[i - 1]) decisions.push_back({i, order[i]});
    if (!decisions.empty()) take_if_wanted(try_run(decisions));
  }

  // From the last to the first: what comes after a switch that is gone has another meaning.
  void drop_switches() {
    for (bool is_smaller = true; is_smaller;) {
      is_smaller = false;
      std::vector<ThreadSwitch> all = switches_of(best_.controlled());
      for (size_t i = all.size(); i-- > 0;) {
        std::vector<ThreadSwitch> fewer = all;
        fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
        std::optional<ScheduleRun> run = with_switches(fewer);
        if (!is_wanted(run) || switches_of(run->controlled()).size() >= all.size()) continue;
        best_ = std::move(*run);
        all = switches_of(best_.controlled());
        i = std::min(i, all.size());
        is_smaller = true;
      }
    }
  }

  // A switch is known by its thread's arrivals, a decision by the number of a point, which depends
  // on the switches before it: each takes a run that tells the number.
  std::optional<ScheduleRun> with_switches(std::vector<ThreadSwitch> switches) {
    std::vector<Decision> decisions;
    std::optional<ScheduleRun> run = try_run(decisions);
    while (run && !switches.empty()) {
      const auto next = next_decision(run->controlled(), switches, decisions);
      if (!next) break;
      decisions.push_back(*next);
      run = try_run(decisions);
    }
    return run;
  }

  static std::optional<Decision> next_decision(const ControlledRun& run,
                                               std::vector<ThreadSwitch>& switches,
                                               const std::vector<Decision>& decisions) {
    std::map<ThreadNumber, uint64_t> arrivals;
    for (size_t i = 0; i < run.points.size(); ++i) {
      const SwitchPoint& point = run.points[i];
      const uint64_t arrival = ++arrivals[point.thread];
      if (!decisions.empty() && i <= decisions.back().point) continue;
      const auto found = std::ranges::find_if(switches, [&](const ThreadSwitch& one) {
        return one.from == point.thread && one.arrival == arrival;
      });
      if (found == switches.end()) continue;
      const ThreadNumber to = found->to;
      switches.erase(found);
      if (point.chosen != to && std::ranges::binary_search(point.enabled, to))
        return Decision{i, to};
    }
    return std::nullopt;
  }

  std::vector<OrderConstraint> orders_around_switches() const {
    const ControlledRun& run = best_.controlled();
    const std::vector<ThreadAccess> accesses = executed_accesses(run);
    std::vector<OrderConstraint> orders;
    for (size_t i = 0; i < run.points.size(); ++i) {
      const SwitchPoint& point = run.points[i];
      if (point.chosen == undisturbed_choice(point)) continue;
      const auto order = order_around(accesses, i, undisturbed_choice(point));
      if (order && std::ranges::count(orders, *order) == 0) orders.push_back(*order);
    }
    return orders;
  }

  // The held thread does `then`; what others did meanwhile had to come first.
  std::optional<OrderConstraint> order_around(const std::vector<ThreadAccess>& accesses,
                                              size_t switched, ThreadNumber held) const {
    size_t back = switched;
    while (back < accesses.size() && accesses[back].thread != held) ++back;
    const auto conflicting = [&](const ThreadAccess& then) -> std::optional<size_t> {
      for (size_t i = back; i-- > switched;)
        if (is_conflict(accesses[i], then) && site_of(best_.trace(), accesses[i])) return i;
      return std::nullopt;
    };
    for (size_t i = back; i < accesses.size(); ++i) {
      if (accesses[i].thread != held || !site_of(best_.trace(), accesses[i])) continue;
      if (const auto first = conflicting(accesses[i])) return order_of(accesses, *first, i);
    }
    // The held thread never got there: what it was about to do comes after all that was seen.
    const auto pending = pending_at(switched, held);
    if (!pending) return std::nullopt;
    if (const auto first = conflicting(*pending)) return order_of(accesses, *first, *pending, back);
    return std::nullopt;
  }

  std::optional<ThreadAccess> pending_at(size_t point, ThreadNumber thread) const {
    PendingAccesses pending;
    for (size_t i = 0; i <= point; ++i) pending.arrive(best_.controlled().points[i]);
    ThreadAccess access = pending.of(thread);
    return site_of(best_.trace(), access) ? std::optional(access) : std::nullopt;
  }

  OrderConstraint order_of(const std::vector<ThreadAccess>& accesses, size_t first,
                           size_t then) const {
    return order_of(accesses, first, accesses[then], then);
  }
  OrderConstraint order_of(const std::vector<ThreadAccess>& accesses, size_t first,
                           const ThreadAccess& then, size_t then_at) const {
    OrderConstraint order;
    order.thread = then.thread;
    order.site = *site_of(best_.trace(), then);
    order.visit = visits_before(accesses, then_at, then) + 1;
    order.other = accesses[first].thread;
    order.other_site = *site_of(best_.trace(), accesses[first]);
    order.other_visit = visits_before(accesses, first, accesses[first]) + 1;
    return order;
  }

  // One that is enough alone, else all but those without which the failure stays; none if it takes
  // more than orders.
  std::vector<OrderConstraint> needed(std::vector<OrderConstraint> orders) {
    if (orders.empty() || !refine(orders)) return {};
    std::vector<OrderConstraint> single = orders;
    if (const auto undisturbed = try_run({}))
      for (const OrderConstraint& order : reversed_in(*undisturbed, most_single_orders))
        single.push_back(order);
    for (const OrderConstraint& order : single)
      if (take_if_wanted(with_orders({order}))) return {order};
    for (size_t i = orders.size(); i-- > 0;) {
      std::vector<OrderConstraint> fewer = orders;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (take_if_wanted(with_orders(fewer))) orders = std::move(fewer);
    }
    return orders;
  }

  // A run that keeps to the orders and does not fail shows which order is missing.
  bool refine(std::vector<OrderConstraint>& orders) {
    for (size_t tries = 0; tries < most_refinements; ++tries) {
      const std::optional<ScheduleRun> run = with_orders(orders);
      if (take_if_wanted(run)) return true;
      if (!run) return false;
      const auto missing = reversed_in(*run, 1);
      if (missing.empty() || std::ranges::count(orders, missing[0]) > 0) return false;
      orders.push_back(missing[0]);
    }
    return false;
  }

  // The first accesses of the run before which another thread did what, in the failing run, came
  // after them or not at all.
  std::vector<OrderConstraint> reversed_in(const ScheduleRun& run, size_t most) const {
    const std::map<Visit, size_t> places = places_in(best_);
    std::map<uint64_t, std::vector<std::pair<ThreadAccess, Visit>>> of_object;
    std::vector<OrderConstraint> orders;
    Visits visits;
    for (const ThreadAccess& access : executed_accesses(run.controlled())) {
      const SiteName* site = site_of(run.trace(), access);
      if (site == nullptr) continue;
      const Visit visit{access.thread, *site, ++visits[{access.thread, access.site}]};
      auto& earlier = of_object[shared_part(access.object)];
      const auto place = places.find(visit);
      for (const auto& [other, other_visit] : earlier) {
        if (place == places.end() || !is_conflict(other, access)) continue;
        const auto other_place = places.find(other_visit);
        if (other_place != places.end() && other_place->second < place->second) continue;
        orders.push_back(order_of_visits(other_visit, visit));
        if (orders.size() == most) return orders;
      }
      earlier.emplace_back(access, visit);
    }
    return orders;
  }

  // Orders under which it fails whoever goes first otherwise: a drawn run that keeps to them and
  // does not fail shows which one is missing. None when they do not come to an end.
  std::vector<OrderConstraint> enough_for_all(std::vector<OrderConstraint> orders) {
    Schedule drawn = base();
    drawn.sampler = Sampler::random_walk;
    for (int failing = 0; !orders.empty() && failing < draws_that_must_fail;) {
      drawn.seed = best_.schedule.seed + static_cast<uint64_t>(failing);
      const std::optional<ScheduleRun> run = with_orders(orders, drawn);
      if (is_wanted(run) && ++failing) continue;
      const auto missing = run ? reversed_in(*run, 1) : std::vector<OrderConstraint>{};
      if (missing.empty() || std::ranges::count(orders, missing[0]) > 0) return {};
      if (orders.size() >= most_orders) return {};
      orders.push_back(missing[0]);
    }
    return orders;
  }

  std::optional<ScheduleRun> with_orders(const std::vector<OrderConstraint>& orders) {
    return with_orders(orders, base());
  }
  std::optional<ScheduleRun> with_orders(const std::vector<OrderConstraint>& orders,
                                         const Schedule& otherwise) {
    std::vector<Decision> decisions;
    std::optional<ScheduleRun> run = try_run(otherwise, decisions);
    while (run) {
      const auto next = first_correction(*run, orders);
      if (!next) break;
      // The same point again: what was decided there was not obeyed.
      if (!decisions.empty() && next->point <= decisions.back().point) return std::nullopt;
      decisions.push_back(*next);
      run = try_run(otherwise, decisions);
    }
    return run;
  }

  const RunSchedule& run_;
  ScheduleRun best_;
  const std::string wanted_;
  uint64_t left_;
};

}  // namespace

std::vector<ThreadSwitch> switches_of(const ControlledRun& run) {
  std::vector<ThreadSwitch> all;
  std::map<ThreadNumber, uint64_t> arrivals;
  for (const SwitchPoint& point : run.points) {
    const uint64_t arrival = ++arrivals[point.thread];
    if (point.chosen != undisturbed_choice(point))
      all.push_back({point.thread, arrival, point.chosen});
  }
  return all;
}

Schedule as_decisions(const ScheduleRun& run) {
  Schedule schedule = run.schedule;
  schedule.sampler = Sampler::stay;
  schedule.decisions.clear();
  schedule.selected.clear();
  schedule.remaining.clear();
  const auto& points = run.controlled().points;
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].chosen != undisturbed_choice(points[i]))
      schedule.decisions.push_back({i, points[i].chosen});
  return schedule;
}

Reduction reduce(const RunSchedule& run, const ScheduleRun& failing, uint64_t most_runs) {
  return Reducer(run, failing, most_runs)();
}

std::string thread_text(const Trace& trace, ThreadNumber thread) {
  const TracedThread* traced = scheduled_thread(trace, thread);
  if (traced != nullptr && !traced->name.text.empty()) return told(traced->name);
  return fmt::format("thread {}", thread);
}

std::vector<std::string> deadlock_sentences(const Trace& trace) {
  std::vector<std::string> all;
  for (const DeadlockedThread& stuck : trace.controlled->deadlock) {
    const std::string where =
        stuck.site < trace.sites.size() ? " at " + to_string(trace.sites[stuck.site].name) : "";
    const std::string who = thread_text(trace, stuck.thread);
    all.push_back(
        stuck.held_by
            ? fmt::format("{} waits{} for {}", who, where, thread_text(trace, *stuck.held_by))
            : fmt::format("{} waits{}, and nobody is left who could end that", who, where));
  }
  return all;
}

}  // namespace unflake
