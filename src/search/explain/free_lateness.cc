#include "search/explain/free_lateness.h"

#include <algorithm>
#include <map>

#include "search/repair/points.h"
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
constexpr double allowed_chance = 0.01;
constexpr int most_to_believe = 20;

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

// So many runs in a row fail by chance at most once in a hundred times.
int runs_to_believe_in(const Count& by_itself) {
  if (by_itself.hits == 0 || by_itself.runs == 0) return runs_to_believe;
  const double rate = static_cast<double>(by_itself.hits) / by_itself.runs;
  int runs = runs_to_believe;
  for (double chance = rate * rate; chance > allowed_chance && runs < most_to_believe; ++runs)
    chance *= rate;
  return runs;
}

// The first thing that it does, whatever that is.
std::optional<Intervention> whole_thread_late(const Trace& usual, uint32_t thread, Duration by) {
  const auto steps = steps_of(usual, thread, RepairLines({}, nullptr));
  if (steps.empty()) return std::nullopt;
  Intervention late;
  late.duration = by;
  late = late_before(late, steps.front());
  late.threads = Intervention::Threads::named;
  late.thread = usual.threads[thread].name;
  return late;
}

}  // namespace

std::optional<Trial> late_from_its_start(RepairRuns& runs) {
  const Trial usual = runs.test().passing;
  const auto passing = runs.record(usual, nullptr, End::passed);
  if (!passing) return std::nullopt;
  const Trace& trace = *passing->trace;
  const Duration already = longest_delay(usual.plan);
  size_t asked = 0;
  for (const Duration by : {100ms, 400ms})
    for (uint32_t thread = 0; thread < trace.threads.size(); ++thread) {
      if (trace.threads[thread].parent == no_index || ++asked > 2 * most_alone) continue;
      const auto late = whole_thread_late(trace, thread, already + by);
      if (!late) continue;
      Trial trial = usual;
      trial.plan.agent = true;
      trial.plan.interventions.push_back(*late);
      trial.why = trace.threads[thread].name.text + " late from its start";
      int failed = 0;
      const int needed = usual.plan.interventions.empty()
                             ? runs_to_believe_in(runs.test().by_itself)
                             : runs_to_believe;
      while (failed < needed && runs.run(trial).end == End::failed) ++failed;
      if (failed == needed) return trial;
    }
  return std::nullopt;
}

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
