#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "search/reproduce/difference.h"
#include "search/reproduce/strategy.h"
#include "trace/names.h"
#include "util/paths.h"

namespace unflake {
namespace {

constexpr int enough_of_each = 10;  // outcomes
constexpr int least_of_each = 3;
constexpr int runs_without_a_failure = 24;  // then nothing is to be learned
constexpr size_t most_orders = 20;

// What makes a test fail more often without making it another test, and nothing at all.
const std::array surroundings = {Conditions{}, Conditions{true, 1, 0}, Conditions{true, 1, 2},
                                 Conditions{false, 0.5, 0}};

// Runs of both outcomes, with their calls.
class Lessons {
 public:
  explicit Lessons(Hunt& hunt) : hunt_(hunt) {
    for (const ExperimentResult& run : hunt.profile().runs) add(run);
  }

  void learn() {
    const Duration until = hunt_.runner().elapsed() + hunt_.time_to_search() / 3;
    for (int run = 0; !is_enough() && !is_hopeless(run); ++run) {
      if (hunt_.over() || hunt_.runner().elapsed() > until) return;
      if (!look(surroundings[static_cast<size_t>(run) % surroundings.size()])) return;
    }
  }

  bool has_both() const { return reached_ >= least_of_each && others_ >= least_of_each; }
  int reached() const { return reached_; }
  int others() const { return others_; }
  std::vector<SeenRun> runs() const {
    std::vector<SeenRun> seen;
    for (const auto& [trace, is_reached] : runs_) seen.push_back({trace.get(), is_reached});
    return seen;
  }

 private:
  bool is_enough() const { return reached_ >= enough_of_each && others_ >= enough_of_each; }
  bool is_hopeless(int runs) const { return runs >= runs_without_a_failure && reached_ == 0; }

  bool look(const Conditions& conditions) {
    Trial trial{hunt_.base_plan(), conditions, ""};
    trial.plan.calls = trial.plan.stacks = true;
    if (line_) trial.plan.interventions.push_back(*line_);
    const auto seen = hunt_.runner().run(trial, TrialEnded::Purpose::look,
                                         {hunt_.times().limit_for(trial), hunt_.runner().left()});
    if (!seen) return false;
    add(seen->result);
    return true;
  }

  void add(const ExperimentResult& run) {
    const bool is_reached = hunt_.goal().is_reached(run);
    if (!run.trace || (!is_reached && run.outcome.failed() && !hunt_.goal().is_inverted())) return;
    int& count = is_reached ? reached_ : others_;
    if (count >= 2 * enough_of_each) return;
    ++count;
    runs_.emplace_back(run.trace, is_reached);
    const TracedFailure* failure = main_failure(*run.trace);
    if (failure != nullptr && !line_ && failure->line > 0 && !failure->file.empty())
      watch(*failure);
  }

  // Whoever passes the check is compared, too.
  void watch(const TracedFailure& failure) {
    line_.emplace();
    line_->action = Intervention::Action::watch;
    line_->site.file = base_name(failure.file);
    line_->site.line = failure.line;
  }

  Hunt& hunt_;
  std::optional<Intervention> line_;  // of the failing check
  std::vector<std::pair<std::shared_ptr<const Trace>, bool>> runs_;
  int reached_ = 0, others_ = 0;
};

std::string told(const OrderedMoment& moment, const ThreadName& thread) {
  OrderedMoment one = moment;
  one.thread = unflake::told(thread);
  return to_string(one);
}

std::string why_of(const OrderDifference& order, const std::vector<Intervention>& plan,
                   HoldAt where) {
  return fmt::format("{} before {}, as in {} of {} runs that fail and {} of {} that pass{}",
                     told(order.first, plan[0].thread), told(order.then, plan[1].thread),
                     order.in_failing.hits, order.in_failing.runs, order.in_passing.hits,
                     order.in_passing.runs,
                     where == HoldAt::step_before ? ", held a step before" : "");
}

// Of one order, the most precise first.
std::vector<Trial> trials_of(const Hunt& hunt, const OrderDifference& order,
                             const std::vector<SeenRun>& runs) {
  std::vector<Trial> trials;
  for (const HoldAt where : {HoldAt::call, HoldAt::step_before}) {
    Trial trial{hunt.base_plan(), {}, ""};
    trial.plan.interventions = as_interventions(order, runs, where);
    if (trial.plan.interventions.empty()) continue;
    trial.why = why_of(order, trial.plan.interventions, where);
    trials.push_back(std::move(trial));
  }
  return trials;
}

Trial both(const Trial& first, const Trial& second) {
  Trial trial = first;
  trial.why += "; and " + second.why;
  const size_t before = trial.plan.interventions.size();
  for (Intervention one : second.plan.interventions) {
    if (one.until) *one.until += before;
    trial.plan.interventions.push_back(std::move(one));
  }
  return trial;
}

void try_order(Hunt& hunt, const Trial& trial) {
  const auto seen = hunt.observe(trial);
  if (seen && seen->hit) hunt.confirm(trial, *seen);
}

}  // namespace

void search_difference(Hunt& hunt) {
  Lessons lessons(hunt);
  lessons.learn();
  if (!lessons.has_both()) {
    hunt.runner().teller().say(
        fmt::format("only {} runs with the failure and {} without it: too few to compare",
                    lessons.reached(), lessons.others()));
    return;
  }
  const std::vector<SeenRun> runs = lessons.runs();
  std::vector<OrderDifference> orders = find_order_differences(runs);
  if (orders.size() > most_orders) orders.resize(most_orders);
  hunt.runner().teller().say(
      fmt::format("{} orders set {} runs with the failure apart from {} without it", orders.size(),
                  lessons.reached(), lessons.others()));
  std::vector<Trial> best;  // of the first two orders
  for (const OrderDifference& order : orders)
    for (const Trial& trial : trials_of(hunt, order, runs)) {
      if (hunt.over()) return;
      try_order(hunt, trial);
      const bool is_next = best.size() < 2 && &order < &orders[0] + 2;
      if (is_next && (best.empty() || &order != &orders[0])) best.push_back(trial);
    }
  if (best.size() == 2 && !hunt.over()) try_order(hunt, both(best[0], best[1]));
}

}  // namespace unflake
