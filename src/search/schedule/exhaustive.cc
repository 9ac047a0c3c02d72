#include "search/schedule/exhaustive.h"

#include <algorithm>
#include <map>

namespace unflake {
namespace {

bool is_in(const std::vector<ThreadAccess>& accesses, ThreadNumber thread) {
  return std::ranges::any_of(accesses, [&](const auto& one) { return one.thread == thread; });
}

bool is_choice(const SwitchPoint& point) {
  return std::ranges::binary_search(point.enabled, point.chosen);
}

// The end of main waits until nobody else can go on, so that a run in which the process ends while
// threads are still at work is none of these.
bool exit_waits(const SwitchPoint& point) {
  return point.thread == 0 && point.site == no_index && point.object == no_object &&
         !can_stay(point);
}

// A state in which a thread is chosen.
struct Node {
  SwitchPoint point;
  std::vector<ThreadAccess> pending;  // of the enabled threads, in their order
  ThreadNumber chosen = 0;
  std::vector<ThreadAccess> sleep;  // what need not be tried, for an equal run was made
  std::vector<ThreadNumber> tried;
  int preemptions = 0;  // until here

  int cost_of(ThreadNumber thread) const {
    return can_stay(point) && thread != point.thread ? 1 : 0;
  }
  ThreadAccess access_of(ThreadNumber thread) const {
    const auto at = std::ranges::lower_bound(point.enabled, thread) - point.enabled.begin();
    return pending[static_cast<size_t>(at)];
  }
};

class Exhaustion {
 public:
  Exhaustion(const RunSchedule& run, const ExhaustiveOptions& options, const SeeRun& see)
      : run_(run), options_(options), see_(see) {}

  ExhaustiveResult operator()() {
    std::optional<Schedule> next = options_.base;
    next->sampler = Sampler::stay;
    while (next) {
      if (result_.schedules >= options_.most_schedules) return gave_up("there are more schedules");
      const auto seen = run_(*next);
      if (!seen) return gave_up("the budget is over");
      ++result_.schedules;
      const bool goes_on = see_(*seen);
      if (!goes_on) return gave_up("a failure was found");
      if (!take(seen->controlled())) return std::move(result_);
      next = next_schedule();
    }
    result_.is_complete = true;
    return std::move(result_);
  }

 private:
  ExhaustiveResult gave_up(const char* why) {
    result_.why_incomplete = why;
    return std::move(result_);
  }

  bool take(const ControlledRun& run) {
    if (run.points.size() < run.points_in_all) result_.why_incomplete = "its runs are too long";
    if (!run.not_repeatable.empty()) result_.why_incomplete = "its runs are not repeatable";
    if (!std::ranges::all_of(run.points, is_choice))
      result_.why_incomplete = "a run makes no sense";
    if (!follows_path(run)) result_.why_incomplete = "equal schedules gave different runs";
    if (!result_.why_incomplete.empty()) return false;
    if (std::ranges::any_of(run.points, exit_waits)) result_.left_some_out = true;
    extend(run);
    return true;
  }

  bool follows_path(const ControlledRun& run) const {
    if (run.points.size() < path_.size()) return false;
    for (size_t i = 0; i < path_.size(); ++i)
      if (run.points[i].chosen != path_[i].chosen ||
          run.points[i].enabled != path_[i].point.enabled)
        return false;
    return true;
  }

  // Adds the states that the run came to after the ones that are known.
  void extend(const ControlledRun& run) {
    const size_t known = path_.size();
    PendingAccesses pending;
    OrderHash hash;
    for (size_t i = 0; i < run.points.size(); ++i) {
      const SwitchPoint& point = run.points[i];
      pending.arrive(point);
      if (i >= known) {
        Node node = node_at(point, pending);
        if (is_bounded() && was_here(node, hash.value())) return;
        path_.push_back(std::move(node));
        // An equal run was made before: only what else could happen here is of interest.
        if (is_in(path_.back().sleep, point.chosen)) return;
      }
      hash.add(pending.of(point.chosen));
    }
  }

  Node node_at(const SwitchPoint& point, const PendingAccesses& pending) const {
    Node node;
    node.point = point;
    node.chosen = point.chosen;
    for (const ThreadNumber thread : point.enabled) node.pending.push_back(pending.of(thread));
    if (path_.empty()) return node;
    const Node& before = path_.back();
    const ThreadAccess done = before.access_of(before.chosen);
    node.preemptions = before.preemptions + before.cost_of(before.chosen);
    for (const ThreadAccess& asleep : before.sleep)
      if (asleep.thread != done.thread && !is_conflict(asleep, done)) node.sleep.push_back(asleep);
    return node;
  }

  bool is_bounded() const { return options_.most_preemptions.has_value(); }

  bool was_here(const Node& node, uint64_t order) {
    const auto [entry, is_new] = visited_.try_emplace({order, node.point.thread}, node.preemptions);
    if (!is_new && entry->second <= node.preemptions) return true;
    entry->second = node.preemptions;
    return false;
  }

  std::optional<Schedule> next_schedule() {
    while (!path_.empty()) {
      Node& node = path_.back();
      node.tried.push_back(node.chosen);
      if (!is_bounded() && !is_in(node.sleep, node.chosen))
        node.sleep.push_back(node.access_of(node.chosen));
      if (const auto thread = untried(node)) {
        node.chosen = *thread;
        return schedule_of_path();
      }
      path_.pop_back();
    }
    return std::nullopt;
  }

  std::optional<ThreadNumber> untried(const Node& node) {
    for (const ThreadNumber thread : node.point.enabled) {
      if (std::ranges::count(node.tried, thread) > 0 || is_in(node.sleep, thread)) continue;
      if (!is_bounded() || node.preemptions + node.cost_of(thread) <= *options_.most_preemptions)
        return thread;
      result_.left_some_out = true;
    }
    return std::nullopt;
  }

  Schedule schedule_of_path() const {
    Schedule schedule = options_.base;
    schedule.sampler = Sampler::stay;
    for (size_t i = 0; i < path_.size(); ++i)
      if (path_[i].chosen != undisturbed_choice(path_[i].point))
        schedule.decisions.push_back({i, path_[i].chosen});
    return schedule;
  }

  const RunSchedule& run_;
  const ExhaustiveOptions& options_;
  const SeeRun& see_;
  ExhaustiveResult result_;
  std::vector<Node> path_;
  std::map<std::pair<uint64_t, ThreadNumber>, int> visited_;  // the fewest preemptions
};

}  // namespace

ExhaustiveResult explore_all(const RunSchedule& run, const ExhaustiveOptions& options,
                             const SeeRun& see) {
  return Exhaustion(run, options, see)();
}

}  // namespace unflake
