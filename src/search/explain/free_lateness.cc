#include "search/explain/free_lateness.h"

#include <algorithm>
#include <map>

#include "search/schedule/free_run.h"
#include "trace/happens_before.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Action = Intervention::Action;
using End = RepairRuns::End;

constexpr int runs_to_believe = 2;
constexpr size_t most_alone = 6;

// The same threads late at the same places, whatever the others do.
std::vector<Intervention> holds_as_delays(const std::vector<Intervention>& plan, Duration late) {
  std::vector<Intervention> delays;
  for (Intervention one : plan) {
    if (one.action == Action::watch) continue;
    if (one.action == Action::hold) one.duration = late;
    one.action = Action::delay;
    one.until.reset();
    one.anchor.reset();
    one.count = 1;
    delays.push_back(std::move(one));
  }
  return delays;
}

class LatenessSearch {
 public:
  LatenessSearch(RepairRuns& runs, const Plan& plan) : runs_(runs), plan_(plan) {
    plan_.schedule.reset();
    plan_.interventions.clear();
    plan_.agent = true;
  }

  std::optional<Trial> operator()(const std::vector<Intervention>& delays) {
    if (delays.empty()) return std::nullopt;
    if (delays.size() > 1)
      for (size_t i = 0; i < delays.size() && i < most_alone; ++i)
        if (auto found = trial_of({delays[i]})) return found;
    return trial_of(delays);
  }

 private:
  std::optional<Trial> trial_of(std::vector<Intervention> delays) {
    Trial trial{plan_, {}, "late instead"};
    trial.plan.interventions = std::move(delays);
    for (int i = 0; i < runs_to_believe; ++i)
      if (runs_.run(trial).end != End::failed) return std::nullopt;
    return trial;
  }

  RepairRuns& runs_;
  Plan plan_;
};

std::optional<Intervention> delay_at(const Trace& trace, const SwitchPoint& point, uint64_t visit) {
  const TracedThread* thread = scheduled_thread(trace, point.thread);
  if (thread == nullptr || point.site >= trace.sites.size()) return std::nullopt;
  Intervention delay;
  delay.site = trace.sites[point.site].name;
  delay.threads = Intervention::Threads::named;
  delay.thread = thread->name;
  delay.executable = executable_of(trace, *thread);
  delay.visits = Intervention::Visits::only_nth;
  delay.nth = visit;
  return delay;
}

}  // namespace

// Of a call that is several points, each is counted: the first visits are right.
std::vector<Intervention> passed_over(const Trace& controlled, Duration late) {
  std::vector<Intervention> all;
  if (!controlled.controlled) return all;
  std::map<std::pair<ThreadNumber, uint32_t>, uint64_t> visits;
  for (const SwitchPoint& point : controlled.controlled->points) {
    const uint64_t visit = ++visits[{point.thread, point.site}];
    if (point.chosen == point.thread || !std::ranges::count(point.enabled, point.thread)) continue;
    auto delay = delay_at(controlled, point, visit);
    if (!delay) continue;
    delay->duration = late;
    all.push_back(std::move(*delay));
  }
  return all;
}

std::optional<Trial> as_lateness(RepairRuns& runs, const Plan& plan, const Trace* controlled) {
  LatenessSearch search(runs, plan);
  if (controlled != nullptr && controlled->controlled) {
    std::vector<Intervention> late;
    for (const LateVisit& visit : late_visits(*controlled, *controlled))
      late.push_back(visit.delay);
    for (const int factor : {1, 2}) {
      for (Intervention& one : late) one.duration *= factor;
      if (auto found = search(late)) return found;
    }
  }
  for (const Duration by : {100ms, 400ms}) {
    if (auto found = search(holds_as_delays(plan.interventions, by))) return found;
    if (controlled != nullptr)
      if (auto found = search(passed_over(*controlled, by))) return found;
  }
  return std::nullopt;
}

}  // namespace unflake
