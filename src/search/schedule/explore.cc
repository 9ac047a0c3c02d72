#include "search/schedule/explore.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/schedule/exhaustive.h"
#include "search/schedule/free_run.h"
#include "search/schedule/portfolio.h"
#include "search/schedule/reduction.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Answer = ExploreReport::Answer;
using Purpose = TrialRunner::Purpose;

// After so many schedules without a new order, the next one shows one in at most 1 % of cases, with
// a confidence of 95 %.
constexpr uint64_t enough_without_new = 300;
constexpr uint64_t first_quota = 6;  // schedules of a level in the first round
constexpr uint64_t more_in_each_round = 4;
constexpr uint64_t repeats = 5;  // of a failing schedule
constexpr uint64_t most_free_runs = 5;
constexpr uint64_t runs_for_rate = 50;  // of each sampler
constexpr Duration longest_for_rates = 10s;
constexpr int most_preemptions = 2;
constexpr uint64_t draws_when_held = 10;  // besides the run in which nobody is interrupted
// Few: how late a thread has to be is measured once a schedule has failed.
constexpr Duration stalls[] = {10ms, 100ms, 500ms, 2s, 5s};

// A kind of switch points together with how late threads may be: what has been seen there.
struct Level {
  ScheduleLevel settings;
  Portfolio portfolio;
  ScheduleCoverage coverage;
  bool is_all_seen = false;

  bool may_show_more() const {
    return !is_all_seen && coverage.runs_since_new() < enough_without_new;
  }

  // Where nobody knows of a failure, a search need not wait until every order was seen: two places
  // that can come in either order are what matters most.
  bool is_exhausted(bool pairs_are_enough) const {
    return !may_show_more() ||
           (pairs_are_enough && coverage.runs_since_new_pair() >= enough_without_new);
  }
};

std::string text_of(const ScheduleLevel& level) {
  std::string text =
      level.accesses.empty() ? "exchanges at calls" : "exchanges at calls and memory accesses";
  if (level.stall > Duration{})
    text += fmt::format(", threads up to {} late", format_duration(level.stall));
  return text;
}

void count(std::vector<ExploreReport::Tally>& tallies, const ScheduleRun& run) {
  auto tally = std::ranges::find(tallies, run.schedule.sampler, &ExploreReport::Tally::sampler);
  if (tally == tallies.end())
    tally = tallies.insert(tally, ExploreReport::Tally{run.schedule.sampler});
  ++tally->schedules;
  if (run.hit) ++tally->failures;
}

bool gave_up_a_hold(const Trace& trace) {
  return std::ranges::any_of(trace.interventions, [](const TracedIntervention& state) {
    return state.let_go > 0 || state.impossible > 0;
  });
}

// All levels of a search, in the order in which they are sampled.
class Levels {
 public:
  explicit Levels(const ExploreOptions& options) : options_(options) {}

  // Lateness matters only where time passes.
  void add_at_calls(const ScheduleProfile& profile) {
    add(profile, {}, 0);
    if (!profile.has_deadlines) return;
    for (const Duration stall : stalls)
      if (stall <= options_.longest_stall) add(profile, {{}, stall, {}}, levels_.size());
  }

  void add_at_accesses(const ScheduleProfile& profile, const std::vector<SiteName>& accesses,
                       const std::vector<SiteName>& hot) {
    add(profile, {accesses, {}, hot}, 1);
    if (profile.has_deadlines && options_.longest_stall > Duration{})
      add(profile, {accesses, options_.longest_stall, hot}, levels_.size());
  }

  size_t size() const { return levels_.size(); }
  Level& operator[](size_t number) { return levels_[number]; }
  auto begin() const { return levels_.begin(); }
  auto end() const { return levels_.end(); }

  // With the finest switch points there are, and nobody late.
  Level& finest() {
    return levels_.size() > 1 && !levels_[1].settings.accesses.empty() ? levels_[1] : levels_[0];
  }
  // The first whose schedules include this one; null: none does.
  Level* with(const Schedule& schedule) {
    const auto found = std::ranges::find_if(levels_, [&](const Level& one) {
      return one.settings.accesses == schedule.accesses && one.settings.stall >= schedule.stall;
    });
    return found == levels_.end() ? nullptr : &*found;
  }
  bool are_exhausted() const {
    return std::ranges::all_of(
        levels_, [&](const Level& level) { return level.is_exhausted(options_.pairs_are_enough); });
  }
  bool have_new_orders() const {
    return std::ranges::any_of(levels_, [](const Level& level) { return level.may_show_more(); });
  }
  bool are_all_seen() const { return std::ranges::all_of(levels_, &Level::is_all_seen); }

 private:
  void add(const ScheduleProfile& profile, const ScheduleLevel& settings, size_t at) {
    const uint64_t seed = options_.seed * 1000 + levels_.size();
    Level level{settings, Portfolio(profile, settings, options_.samplers, seed), {}};
    levels_.insert(levels_.begin() + static_cast<ptrdiff_t>(at), std::move(level));
  }

  const ExploreOptions& options_;
  std::vector<Level> levels_;
};

std::vector<std::string> texts_of(const std::vector<SiteName>& names) {
  std::vector<std::string> texts;
  for (const SiteName& name : names) texts.push_back(to_string(name));
  return texts;
}

class ScheduleSearch {
 public:
  ScheduleSearch(TrialRunner& runner, const ExploreOptions& options)
      : options_(options), runner_(runner), runs_(runner, options.plan, options.limits) {}

  Result<ExploreReport> operator()() {
    report_.test = runner_.test().id;
    report_.seed = options_.seed;
    report_.budget = options_.limits.budget;
    if (const auto profile = profile_run({})) search(*profile);
    if (runner_.error()) return *runner_.error();
    finish();
    return std::move(report_);
  }

 private:
  void step(const std::string& text) { runner_.teller().say(text); }

  std::optional<ScheduleRun> profile_run(std::vector<SiteName> accesses) {
    Schedule schedule;
    schedule.accesses = std::move(accesses);
    schedule.hot_accesses = hot_accesses_;
    auto run = runs_.run(schedule, Purpose::profile);
    if (run) note(*run);
    confirm();
    return run;
  }

  void search(const ScheduleRun& profile) {
    const ScheduleProfile seen = profile_of(profile.trace());
    levels_.add_at_calls(seen);
    report_.undisturbed = profile.result.trace;
    report_.threads = seen.threads;
    report_.switch_points = profile.controlled().points_in_all;
    report_.shared_objects = seen.shared.size();
    uint64_t quota = report_.threads > 1 ? first_quota : 0;
    for (int round = 0; goes_on() && !levels_.are_exhausted(); ++round) {
      for (size_t i = 0; i < levels_.size() && goes_on(); ++i) {
        sample(levels_[i], quota);
        // Instructions are looked for when calls alone have shown nothing.
        if (i == 0 && round == 0 && goes_on()) add_access_levels();
      }
      if (round == 0 && goes_on() && options_.exhaustive) explore_bounded();
      quota = std::max(first_quota, quota * more_in_each_round);
    }
    if (failing_) settle();
  }

  bool goes_on() const { return !failing_ && !runs_.is_over(); }

  void add_access_levels() {
    const std::vector<SiteName> accesses = shared_accesses();
    if (accesses.empty()) return;
    report_.access_sites = accesses.size();
    step(fmt::format("{} instructions touch memory that several threads use", accesses.size()));
    const auto run = profile_run(accesses);
    if (!run || failing_) return;
    const ScheduleProfile profile = profile_of(run->trace());
    report_.switch_points = std::max(report_.switch_points, profile.length);
    report_.shared_objects = std::max(report_.shared_objects, profile.shared.size());
    levels_.add_at_accesses(profile, accesses, hot_accesses_);
  }

  std::vector<SiteName> shared_accesses() {
    if (!options_.accesses) return {};
    Schedule schedule;
    schedule.find_accesses = true;
    const auto run = runs_.run(schedule);
    report_.looked_for_accesses = run.has_value();
    if (!run) return {};
    hot_accesses_ = run->controlled().hot_accesses;
    report_.hot_accesses = texts_of(hot_accesses_);
    report_.guarded_accesses = run->controlled().guarded_accesses;
    return run->controlled().shared_accesses;
  }

  void sample(Level& level, uint64_t quota) {
    if (level.is_exhausted(options_.pairs_are_enough)) return;
    step(text_of(level.settings));
    report_.longest_stall = std::max(report_.longest_stall, level.settings.stall);
    uint64_t started = 0;
    runs_.run_each(
        [&]() -> std::optional<Schedule> {
          if (started >= quota || level.is_exhausted(options_.pairs_are_enough))
            return std::nullopt;
          ++started;
          return level.portfolio.next();
        },
        [&](const ScheduleRun& run) {
          level.coverage.add(run.trace());
          pairs_.add(run.trace());
          count(report_.tries, run);
          note(run);
          return !failing_;
        });
    confirm();
  }

  // Where nobody is late, only decisions matter.
  void explore_bounded() {
    Level& level = levels_.finest();
    // Without a bound there are often fewer: equal runs are made once.
    if (explore_within(level, std::nullopt, options_.most_exhaustive / 10)) return;
    for (int preemptions = 0; preemptions <= most_preemptions && goes_on(); ++preemptions)
      if (explore_within(level, preemptions, options_.most_exhaustive)) return;
  }

  // Whether there is nothing left to explore, or no way to.
  bool explore_within(Level& level, std::optional<int> preemptions, uint64_t most_schedules) {
    const ExhaustiveResult result = explore_at(level, preemptions, most_schedules);
    const bool is_all = result.is_complete && !result.left_some_out;
    if (is_all || preemptions)
      report_.bounded.push_back({is_all ? std::nullopt : preemptions, result.schedules,
                                 result.is_complete, result.why_incomplete});
    // Exchanges at calls alone are among them.
    if (is_all) levels_[0].is_all_seen = level.is_all_seen = true;
    return is_all || (preemptions && !result.is_complete);
  }

  ExhaustiveResult explore_at(Level& level, std::optional<int> preemptions,
                              uint64_t most_schedules) {
    step(preemptions ? fmt::format("all schedules with at most {} preemption{}", *preemptions,
                                   *preemptions == 1 ? "" : "s")
                     : "all schedules");
    ExhaustiveOptions options;
    options.most_preemptions = preemptions;
    options.most_schedules = most_schedules;
    options.base.accesses = level.settings.accesses;
    options.base.hot_accesses = level.settings.hot_accesses;
    const ExhaustiveResult result =
        explore_all(run_for(runs_.left() / 5), options, [&](const ScheduleRun& run) {
          level.coverage.add(run.trace());
          pairs_.add(run.trace());
          note(run);
          return !failing_;
        });
    confirm();
    return result;
  }

  // Makes runs for no longer than this.
  RunSchedule run_for(Duration at_most) {
    const Duration until = runs_.elapsed() + at_most;
    return [this, until](const Schedule& schedule) {
      return runs_.elapsed() < until ? runs_.run(schedule) : std::nullopt;
    };
  }

  void note(const ScheduleRun& run) {
    if (run.failed() && !run.hit) ++report_.other_failures[headline_of(run.result.outcome)];
    if (!run.hit || failing_) return;
    failing_ = run;
    found_ = {};
    found_.sampler = run.schedule.sampler;
    found_.after_schedules = runs_.count();
    found_.switches_at_first = switches_of(run.controlled()).size();
  }

  // A failure counts when the same schedule gives it again. One that seldom comes back is kept for
  // want of a better one.
  void confirm() {
    if (!failing_ || found_.repeats > 0) return;
    step("it fails; is that so again under the same schedule?");
    while (found_.repeats < repeats) {
      const auto again = runs_.run(failing_->schedule, Purpose::confirm);
      if (!again) return;
      ++found_.repeats;
      if (is_same(*again) && again->controlled().digest == failing_->controlled().digest)
        ++found_.came_back;
    }
    if (2 * found_.came_back > found_.repeats) return;
    if (!report_.found || report_.found->came_back < found_.came_back)
      describe({*failing_, {}, {}, {}, {}});
    failing_.reset();
  }

  bool is_same(const ScheduleRun& run) const {
    return run.failed() && run.failure_id() == failing_->failure_id();
  }

  void settle() {
    ScheduleRun failing = *failing_;
    if (const auto plain = runs_.run(as_decisions(failing)); plain && is_same(*plain))
      failing = *plain;
    lessen_stall(failing);
    step("the fewest exchanges of threads that it takes");
    Reduction reduction = reduce(run_for(runs_.left() / 2), failing, options_.most_for_reduction);
    if (reduction.enough.empty()) hold_orders(reduction);
    const bool fails_undisturbed =
        reduction.switches.empty() && reduction.run.schedule.stall == Duration{};
    if (options_.rates && fails_undisturbed) compare_with_free_runs();
    describe(reduction);
    if (options_.rates && !fails_undisturbed) measure_rates(reduction.run.schedule);
  }

  // Orders for which a thread has to wait while time passes: it is held until they are kept. One
  // alone, or all.
  void hold_orders(Reduction& reduction) {
    std::vector<std::vector<OrderConstraint>> candidates;
    for (const OrderConstraint& order : reduction.orders) candidates.push_back({order});
    std::ranges::reverse(candidates);  // what comes last is next to the failure
    if (reduction.orders.size() > 1) candidates.push_back(reduction.orders);
    for (const auto& orders : candidates) {
      if (!always_fails_when_held(reduction, orders)) continue;
      reduction.enough = orders;
      reduction.sentences = order_sentences(reduction.run, orders);
      return;
    }
  }

  bool always_fails_when_held(const Reduction& reduction,
                              const std::vector<OrderConstraint>& orders) {
    const auto held = as_interventions(orders, reduction.run.trace());
    Schedule schedule;
    schedule.accesses = reduction.run.schedule.accesses;
    schedule.hot_accesses = reduction.run.schedule.hot_accesses;
    for (uint64_t draw = 0; !held.empty() && draw <= draws_when_held; ++draw) {
      if (draw > 0) schedule.sampler = Sampler::random_walk;
      schedule.seed = reduction.run.schedule.seed + draw;
      const auto run = runs_.run(schedule, Purpose::look, held);
      if (!run || !is_same(*run) || gave_up_a_hold(run->trace())) return false;
    }
    return !held.empty();
  }

  // Whoever fails when nobody interferes fails by itself, or cannot stand to be controlled.
  void compare_with_free_runs() {
    step("nobody has to be interrupted for it; does it fail on free cores, too?");
    const Trial free{options_.plan, {}, "on free cores"};
    for (; found_.free_runs < most_free_runs; ++found_.free_runs) {
      const auto seen =
          runner_.run(free, Purpose::baseline, {options_.limits.timeout, runs_.left()});
      if (!seen) return;
      found_.free_failures += seen->result.outcome.failed();
    }
  }

  // The least lateness under which the same exchanges still give the failure.
  void lessen_stall(ScheduleRun& failing) {
    Duration passes{}, fails = failing.schedule.stall;
    if (fails == Duration{}) return;
    step("how late a thread has to be");
    while (fails - passes > std::max<Duration>(100us, fails / 10)) {
      Schedule schedule = failing.schedule;
      schedule.stall = passes + (fails - passes) / 2;
      const auto run = runs_.run(schedule);
      if (!run) return;
      const bool still_fails = is_same(*run);
      if (still_fails) failing = *run;
      (still_fails ? fails : passes) = schedule.stall;
    }
  }

  void describe(const Reduction& reduction) {
    const ScheduleRun& run = reduction.run;
    found_.outcome = run.result.outcome.kind;
    if (!run.result.outcome.failures.empty()) found_.failure = run.result.outcome.failures.front();
    found_.signature = run.result.outcome.signature;
    found_.schedule = run.schedule;
    found_.digest = run.controlled().digest;
    found_.switches = reduction.switches.size();
    found_.orders = reduction.orders;
    found_.enough = reduction.enough;
    found_.sentences = reduction.sentences;
    found_.deadlock = deadlock_sentences(run.trace());
    found_.stall = run.schedule.stall;
    found_.needs_accesses = !run.schedule.accesses.empty();
    found_.trace = run.result.trace;
    report_.found = found_;
  }

  // A search that ends with its first failure says little about how often there is one.
  void measure_rates(const Schedule& found) {
    Level* level = levels_.with(found);
    if (level == nullptr) return;
    step("how often samplers find it");
    std::vector<Sampler> samplers;
    for (const Sampler sampler : level->portfolio.turns())
      if (std::ranges::count(samplers, sampler) == 0) samplers.push_back(sampler);
    const RunSchedule run = run_for(std::min<Duration>(runs_.left() / 4, longest_for_rates));
    for (uint64_t i = 0; i < samplers.size() * runs_for_rate; ++i) {
      const auto seen = run(level->portfolio.next_by(samplers[i % samplers.size()]));
      if (!seen) return;
      count(report_.rates, *seen);
    }
  }

  void finish() {
    report_.elapsed = runs_.elapsed();
    report_.schedules = runs_.count();
    report_.not_repeatable = runs_.not_repeatable();
    report_.pairs = pairs_.pairs();
    report_.pairs_in_both_orders = pairs_.pairs_in_both_orders();
    for (const Level& level : levels_) {
      report_.orders += level.coverage.orders();
      report_.orders_seen_once += level.coverage.orders_seen_once();
      report_.sampled += level.coverage.runs();
    }
    report_.since_new_order = pairs_.runs_since_new();
    report_.answer = answer();
    report_.may_have_new_orders = levels_.have_new_orders();
    report_.why = runs_.why_not_controlled();
  }

  Answer answer() const {
    if (report_.found) return Answer::fails;
    if (!runs_.why_not_controlled().empty()) return Answer::not_controlled;
    if (runner_.stopped()) return Answer::stopped;
    if (runs_.left() <= Duration{}) return Answer::budget_over;
    return levels_.are_all_seen() ? Answer::passes_in_all : Answer::nothing_new;
  }

  const ExploreOptions& options_;
  TrialRunner& runner_;
  ScheduleRuns runs_;
  ExploreReport report_;
  Levels levels_{options_};
  std::vector<SiteName> hot_accesses_;
  ScheduleCoverage pairs_;  // of all levels together
  std::optional<ScheduleRun> failing_;
  ExploreReport::Found found_;
};

}  // namespace

Result<ExploreReport> explore(TrialRunner& runner, const ExploreOptions& options) {
  return ScheduleSearch(runner, options)();
}

}  // namespace unflake
