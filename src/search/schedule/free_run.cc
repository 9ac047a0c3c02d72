#include "search/schedule/free_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "search/schedule/interleaving.h"
#include "trace/happens_before.h"

namespace unflake {
namespace {

constexpr Duration longest_hold = std::chrono::seconds(5);

// One side of an order: which visit of the call it is, and which of the call's points.
struct PlacedVisit {
  uint64_t nth = 1;
  bool is_first = true, is_last = true;
};

PlacedVisit placed(const Trace& trace, ThreadNumber thread, const SiteName& site, uint64_t visit) {
  const auto is_here = [&](uint32_t number) {
    return number < trace.sites.size() && trace.sites[number].name == site;
  };
  uint64_t points = 0, calls = 0;
  for (const SwitchPoint& point : trace.controlled->points)
    points += point.thread == thread && is_here(point.site);
  for (const TracedVisits& visits : trace.visits)
    if (visits.thread == trace.controlled->threads[thread] && is_here(visits.site))
      calls += visits.visits;
  if (calls == 0 || points <= calls) return {visit, true, true};
  if (points % calls != 0) return {(visit * calls + points - 1) / points, true, true};
  const uint64_t each = points / calls, part = (visit - 1) % each;
  return {(visit - 1) / each + 1, part == 0, part + 1 == each};
}

bool has_other_side(const SiteName& site) {
  return !site.api.empty() || (site.file.empty() && site.offset > 0);
}

// Its first point is passed when it begins to wait.
bool is_wait(const SiteName& site) {
  return site.api.find("wait") != std::string::npos;
}

std::optional<Intervention> at_site_in(const Trace& trace, ThreadNumber number,
                                       const SiteName& site) {
  const TracedThread* thread = scheduled_thread(trace, number);
  if (thread == nullptr || site == SiteName()) return std::nullopt;
  Intervention what;
  what.site = site;
  what.threads = Intervention::Threads::named;
  what.thread = thread->name;
  what.executable = executable_of(trace, *thread);
  return what;
}

}  // namespace

std::vector<Intervention> as_interventions(const std::vector<OrderConstraint>& orders,
                                           const Trace& trace) {
  using Position = Intervention::Position;
  std::vector<Intervention> all;
  for (const OrderConstraint& order : orders) {
    auto passed = at_site_in(trace, order.other, order.other_site);
    auto waits = at_site_in(trace, order.thread, order.site);
    if (!passed || !waits) return {};
    const PlacedVisit first = placed(trace, order.other, order.other_site, order.other_visit);
    const PlacedVisit then = placed(trace, order.thread, order.site, order.visit);
    passed->action = Intervention::Action::watch;
    const bool only_begins = is_wait(order.other_site) && !first.is_last;
    if (has_other_side(order.other_site) && !only_begins) passed->position = Position::after;
    waits->action = Intervention::Action::hold;
    waits->duration = longest_hold;
    waits->visits = Intervention::Visits::only_nth;
    waits->nth = then.nth;
    if (!then.is_first && has_other_side(order.site)) waits->position = Position::after;
    waits->until = all.size();
    waits->count = first.nth;
    all.push_back(std::move(*passed));
    all.push_back(std::move(*waits));
  }
  return all;
}

namespace {

using Position = Intervention::Position;

// Less is what switches themselves take.
constexpr Duration least_lateness = std::chrono::milliseconds(1);

// For how long a thread could have gone on and did not. Another one may take its lock meanwhile:
// that wait is not lateness of its own.
struct PassedOver {
  std::optional<Duration> since;
  Duration late{};

  void begin(Duration now) {
    if (!since) since = now;
  }
  void end(Duration now) {
    if (since) late += now - *std::exchange(since, std::nullopt);
  }
};

// Follows a controlled run from point to point, and knows since when which thread is passed over.
class LateVisits {
 public:
  LateVisits(const Trace& trace, const Trace& undisturbed)
      : trace_(trace), undisturbed_(undisturbed) {}

  std::vector<LateVisit> operator()() {
    for (const SwitchPoint& point : trace_.controlled->points) {
      arrive(point);
      note_ready(point);
      go_on(point.chosen, point.at);
    }
    while (!passed_over_.empty())  // who never came to it before the end
      go_on(passed_over_.begin()->first, trace_.controlled->virtual_time);
    std::ranges::stable_sort(found_, std::ranges::greater{},
                             [](const LateVisit& one) { return one.delay.duration; });
    return std::move(found_);
  }

 private:
  void arrive(const SwitchPoint& point) {
    pending_.arrive(point);
    ++arrivals_[{point.thread, point.site}];
    has_waited_[point.thread] = std::ranges::count(point.ready, point.thread) == 0;
    const uint32_t creation = creates(point.site) ? point.site : last_site_;
    for (const ThreadNumber thread : point.enabled) creations_.try_emplace(thread, creation);
  }

  void note_ready(const SwitchPoint& point) {
    for (auto& [thread, passed] : passed_over_)
      if (std::ranges::count(point.ready, thread) == 0) passed.end(point.at);
    for (const ThreadNumber thread : point.ready) passed_over_[thread].begin(point.at);
  }

  void go_on(ThreadNumber thread, Duration now) {
    const ThreadAccess access = pending_.of(thread);
    if (auto passed = passed_over_.extract(thread); !passed.empty()) {
      passed.mapped().end(now);
      add(access, passed.mapped().late);
    }
    last_site_ = access.site;
  }

  bool creates(uint32_t site) const {
    return site < trace_.sites.size() &&
           (trace_.sites[site].group == "thread" || trace_.sites[site].group == "process");
  }

  const SiteName* name_of(uint32_t site) const {
    return site < trace_.sites.size() ? &trace_.sites[site].name : nullptr;
  }

  void add(const ThreadAccess& access, Duration late) {
    const SiteName* site = name_of(access.is_start ? creations_[access.thread] : access.site);
    if (late < least_lateness || site == nullptr || site->api.empty()) return;
    auto delay = at_site_in(trace_, access.thread, *site);
    if (!delay) delay = at_site_in(undisturbed_, access.thread, *site);
    if (!delay) return;
    delay->duration = late;
    if (access.is_start)
      delay->position = Position::start;
    else
      place(*delay, access);
    found_.push_back({*delay, why(*delay)});
  }

  // Who did not have to wait there is late before the call, who had to, after it.
  void place(Intervention& delay, const ThreadAccess& access) {
    const uint64_t visit = arrivals_[{access.thread, access.site}];
    const PlacedVisit here = placed(trace_, access.thread, delay.site, visit);
    delay.visits = Intervention::Visits::only_nth;
    delay.nth = here.nth;
    if (!here.is_first || has_waited_[access.thread]) delay.position = Position::after;
  }

  static std::string why(const Intervention& delay) {
    if (delay.position == Position::start) return fmt::format("{} begins late", told(delay.thread));
    return fmt::format("{} late {} {}", told(delay.thread),
                       delay.position == Position::after ? "after" : "before",
                       to_string(delay.site));
  }

  const Trace& trace_;
  const Trace& undisturbed_;
  PendingAccesses pending_;
  std::map<ThreadNumber, PassedOver> passed_over_;
  std::map<std::pair<ThreadNumber, uint32_t>, uint64_t> arrivals_;
  std::map<ThreadNumber, bool> has_waited_;     // at the last arrival
  std::map<ThreadNumber, uint32_t> creations_;  // what was done when a thread was first seen
  uint32_t last_site_ = no_index;
  std::vector<LateVisit> found_;
};

}  // namespace

std::vector<LateVisit> late_visits(const Trace& trace, const Trace& undisturbed) {
  return LateVisits(trace, undisturbed)();
}

}  // namespace unflake
