#include "search/repair/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "search/balance/balance_runs.h"
#include "search/repair/proof_side.h"
#include "search/repair/proof_verdict.h"
#include "search/repair/sampled_schedules.h"
#include "search/reproduce/hunt.h"
#include "stats/rates.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using ProofKind = ProofRuns::Kind;
using Purpose = TrialEnded::Purpose;

constexpr int enough_before = 20;  // failures without the patch: more say nothing new
constexpr int runs_of_a_dose = 4;
constexpr int runs_of_a_check = 3;
constexpr int vain_runs = 5;             // without a delay that happened
constexpr Duration least_bought = 50ms;  // of run time
constexpr Duration longest_search = 30s;
constexpr int64_t most_at_once = 4;
constexpr int64_t least_waiting = 3;  // times as long as it computes, for company
constexpr int runs_alone = 2;
constexpr Duration noise_in_company = 50ms;
// As long as nobody waits: whether a check can fail at all.
constexpr Duration beyond_patience[] = {3s, 12s, 40s};

std::string counted_runs(int runs) {
  return fmt::format("{} run{}", runs, runs == 1 ? "" : "s");
}

std::string of_runs(const Count& count) {
  return fmt::format("{} of {}", count.hits, counted_runs(count.runs));
}

// Runs with the patch and without, within the time of a step, and what they have shown.
class ProofRunning {
 protected:
  ProofRunning(ProofSide& before, ProofSide& after, const ProofOptions& options)
      : options_(options),
        repro_(options.repro),
        before_(before, options.budget),
        after_(after, options.budget) {
    seen_.changed_check = options.changed_check;
  }

  bool is_over() const {
    return is_refuted() || before_.runner.has_ended() || after_.runner.has_ended();
  }
  Duration left() const { return until_ - spent_; }

  // The answer is clear.
  bool is_refuted() const {
    return seen_.recorded_after > 0 || !seen_.hollow.empty() || after_.skips_alone(before_) ||
           !after_.new_failure(before_).empty();
  }

  ProofRuns& begin(ProofKind kind, const std::string& text) {
    after_.runner.teller().begin(proof_strategy);
    after_.runner.teller().say(text);
    proof_.runs.push_back({});
    proof_.runs.back().kind = kind;
    return proof_.runs.back();
  }

  // One run, unless its time is over. Without an answer the step is over.
  std::optional<ExperimentResult> run(SideRuns& side, const Trial& trial, Purpose purpose) {
    if (left() <= Duration{} || side.runner.has_ended()) return std::nullopt;
    const Duration began = side.runner.elapsed();
    auto seen = side.runner.run(trial, purpose, {limit(side, trial), left()});
    spent_ += side.runner.elapsed() - began;
    if (!seen) return std::nullopt;
    if (!has_started(seen->result)) {
      refused_ = seen->result.process.error;
      return std::nullopt;
    }
    return std::move(seen->result);
  }

  // A hang is told long before the test's own time-out.
  Duration limit(const SideRuns& side, const Trial& trial) const {
    Duration added{};
    for (const Intervention& what : trial.plan.interventions)
      if (!changes_time(what)) added += what.duration;
    if (side.longest == Duration{}) return options_.timeout + 4 * added;
    const int share = 1 + trial.conditions.competitors + (trial.conditions.one_core ? 1 : 0);
    return std::min(options_.timeout, (10 * side.longest + 5s) * share) + 4 * added;
  }

  // So many that are alike, side by side where the test bears company. Fewer: the step is over.
  std::vector<ExperimentResult> run_some(SideRuns& side, const Trial& trial, Purpose purpose,
                                         int most) {
    std::vector<ExperimentResult> made;
    if (at_once_ == 1 || most == 1) {
      if (auto result = run(side, trial, purpose)) made.push_back(std::move(*result));
      return made;
    }
    if (left() <= Duration{} || side.runner.has_ended()) return made;
    const Duration began = side.runner.elapsed(), whole = limit(side, trial);
    const Duration given = std::min(whole, left());
    side.runner.run_series(
        trial, purpose, given, {std::min(most, at_once_), at_once_}, [&](const Observation& seen) {
          const bool is_cut_short = given < whole &&
                                    seen.result.process.end == ProcessResult::End::timed_out &&
                                    seen.result.process.duration >= given;
          if (!has_started(seen.result))
            refused_ = seen.result.process.error;
          else if (!is_cut_short)
            made.push_back(seen.result);
          return false;
        });
    spent_ += side.runner.elapsed() - began;
    return made;
  }

  // Whether runs of the test, which mostly wait, may be made at once: it may have a port or a file
  // of its own, or be slower in company.
  void try_company() {
    const Trial plain{{}, {}, "plain"};
    Duration alone{}, longest{};
    bool is_welcome = true;
    int at_once = most_at_once;
    for (SideRuns* side : {&before_, &after_})
      for (int i = 0; i < runs_alone && is_welcome; ++i) {
        const auto seen = run(*side, plain, Purpose::look);
        is_welcome = seen && !seen->outcome.failed();
        if (!is_welcome) continue;
        alone = std::max(alone, seen->process.duration);
        side->longest = std::max(side->longest, seen->outcome.duration);
        at_once = std::min(at_once, bearable_at_once(*seen));
      }
    for (SideRuns* side : {&before_, &after_}) {
      const int slots = static_cast<int>(side->side.executor.slots());
      if (!is_welcome || slots < 2) return;
      at_once = std::min(at_once, slots);
      at_once_ = std::max(at_once, 2);  // whoever is slower may still bear it under control
      const auto made = run_some(*side, plain, Purpose::look, at_once_);
      const bool are_all = static_cast<int>(made.size()) == at_once_;
      at_once_ = 1;
      for (const ExperimentResult& result : made) {
        longest = std::max(longest, result.process.duration);
        fails_in_company_ = fails_in_company_ || result.outcome.failed();
      }
      is_welcome = are_all && !fails_in_company_ && longest <= 2 * alone + noise_in_company;
    }
    if (is_welcome && at_once >= 2) at_once_ = at_once;
  }

  int bearable_at_once(const ExperimentResult& run) const {
    const Duration computing = run.process.user_cpu + run.process.system_cpu + Duration(1);
    return static_cast<int>(std::clamp<int64_t>(
        options_.cores * run.process.duration / (least_waiting * computing), 1, most_at_once));
  }

  using Enough = std::function<bool()>;
  // Runs that are all alike, until there are enough; a run in which nothing happened to the test
  // does not count. Returns how many did nothing.
  int make(SideRuns& side, const Trial& trial, int most, Purpose purpose, Count& count, int& others,
           const Enough& enough) {
    int vain = 0;
    for (int made = 0; made < most && !enough() && vain < vain_runs;) {
      const auto results = run_some(side, trial, purpose, std::min(at_once_, most - made));
      if (results.empty()) return vain;
      made += static_cast<int>(results.size());
      for (const ExperimentResult& result : results) {
        const bool is_vain = !has_fired(trial.plan, result) && !result.outcome.failed();
        vain += is_vain;
        if (!is_vain && !ran_into_delays(result)) take(side, result, count, others);
      }
    }
    return vain;
  }

  // In turns, so that both see the same machine: none of either when one of them has no time.
  using Pair = std::pair<ExperimentResult, ExperimentResult>;
  std::vector<Pair> run_pairs(const Trial& trial, int most) {
    auto without = run_some(before_, trial, Purpose::baseline, std::min(at_once_, most));
    auto with = without.empty()
                    ? std::vector<ExperimentResult>{}
                    : run_some(after_, trial, Purpose::baseline, static_cast<int>(without.size()));
    std::vector<Pair> pairs;
    for (size_t i = 0; i < with.size() && i < without.size(); ++i)
      pairs.emplace_back(std::move(without[i]), std::move(with[i]));
    return pairs;
  }

  void take(const Pair& pair, ProofRuns& runs) {
    take(before_, pair.first, runs.before, runs.other_failures_before);
    take(after_, pair.second, runs.after, runs.other_failures_after);
  }

  void take(SideRuns& side, const ExperimentResult& result, Count& count, int& others) {
    const Shown shown = side.judge(result, count_others_);
    count.add(shown == Shown::recorded);
    others += shown == Shown::other;
    if (&side == &after_ && shown == Shown::recorded) {
      ++seen_.recorded_after;
      if (seen_.when.empty()) seen_.when = now_;
    }
    if (&side == &after_) ++proof_.runs_with_patch;
  }

  const ProofOptions& options_;
  const Repro& repro_;
  SideRuns before_, after_;
  Proof proof_;
  Duration spent_{}, until_{};
  bool count_others_ = true;
  int at_once_ = 1;                // runs that are alike
  bool fails_in_company_ = false;  // it has a port or a file of its own
  std::string now_;                // what is being tried
  std::string refused_;
  ProofEvidence seen_;
};

// Step by step: what the patch has to stand.
class Prover : ProofRunning {
 public:
  Prover(ProofSide& before, ProofSide& after, const ProofOptions& options)
      : ProofRunning(before, after, options), doses_(options.repro) {}

  Result<Proof> operator()() {
    using Step = void (Prover::*)();
    constexpr std::pair<Step, double> steps[] = {
        {&Prover::try_company, 0.05}, {&Prover::under_plan, 0.3},  {&Prover::later, 0.25},
        {&Prover::plain, 0.3},        {&Prover::check, 0.2},       {&Prover::teeth, 0.9},
        {&Prover::bought, 0.3},       {&Prover::schedules, 0.5},   {&Prover::loads, 0.4},
        {&Prover::search_again, 0.5}, {&Prover::whole_binary, 0.9}};
    for (const auto& [step, share] : steps) {
      if (is_over()) break;
      until_ = spent_ + std::chrono::duration_cast<Duration>((options_.budget - spent_) * share);
      (this->*step)();
    }
    for (const SideRuns* side : {&before_, &after_})
      if (side->runner.error()) return *side->runner.error();
    conclude(proof_, seen_, before_, after_);
    return std::move(proof_);
  }

 private:
  Trial recorded_trial(const SideRuns& side, Duration lateness) const {
    Trial trial{side.side.plan, repro_.conditions, "the plan that made it fail"};
    trial.plan.agent = true;
    trial.plan.calls = doses_.has_delays();  // they tell how late somebody was
    trial.is_one_of_many = true;
    if (lateness > Duration{}) trial.plan = doses_.with_lateness(trial.plan, lateness);
    return trial;
  }

  void under_plan() {
    ProofRuns& runs = begin(ProofKind::under_plan, "runs under the plan that made it fail");
    runs.why_not = why_no_plan();
    if (!runs.why_not.empty()) return;
    const int most = repro_.is_under_control() ? runs_of_a_check : options_.under_plan;
    measure_lateness();
    const Duration lateness = doses_.of_plan();
    now_ = lateness > Duration{} ? fmt::format("under the plan, {} late", format_duration(lateness))
                                 : "under the plan";
    runs.note = lateness > Duration{} ? format_duration(lateness) + " late" : "";
    count_others_ = doses_.is_near(lateness);
    const Duration whole = std::exchange(until_, spent_ + left() / 2);  // as much for the others
    make(before_, recorded_trial(before_, lateness), most, Purpose::replay, runs.before,
         runs.other_failures_before, [&] { return runs.before.hits >= enough_before; });
    until_ = whole;
    const int vain = make(after_, recorded_trial(after_, lateness), most, Purpose::replay,
                          runs.after, runs.other_failures_after, [&] { return is_over(); });
    count_others_ = true;
    proof_.latest = std::max(proof_.latest, lateness);
    if (vain >= vain_runs) {
      runs.why_not = "with the patch no thread comes to where the plan acts";
      runs.after = {};
    }
    if (repro_.is_under_control() && !is_over())
      runs.note = "its decisions mean something else in a changed program";
  }

  std::string why_no_plan() const {
    if (repro_.passes_under_plan) return "under its plan the test passes";
    if (!before_.side.why_no_plan.empty()) return "without the patch, " + before_.side.why_no_plan;
    if (!after_.side.why_no_plan.empty()) return "with the patch, " + after_.side.why_no_plan;
    return "";
  }

  // By a run as it was recorded: what all delays of a thread come to.
  void measure_lateness() {
    if (!doses_.has_delays()) return;
    for (int i = 0; i < runs_of_a_check && doses_.of_plan() == Duration{}; ++i) {
      const auto result = run(before_, recorded_trial(before_, {}), Purpose::replay);
      if (!result) return;
      if (before_.side.is_recorded(result->outcome)) doses_.learn(lateness_in(*result));
    }
  }

  // A longer wait passes for as long as the lateness is shorter than it: others are tried, up to
  // what a machine that works can be late.
  void later() {
    if (doses_.of_plan() == Duration{} || !why_no_plan().empty()) return;
    ProofRuns& runs =
        begin(ProofKind::later, "runs in which threads are later, or less late, at the same place");
    std::vector<std::string> tried;
    for (const Duration lateness : doses_.others())
      if (!is_over() && try_dose(runs, lateness, false)) tried.push_back(format_duration(lateness));
    for (const Duration lateness : doses_.for_every_visit())
      if (!is_over() && try_dose(runs, lateness, true))
        tried.push_back(format_duration(lateness) + " at every visit of every such thread");
    runs.note = join(tried, ", ") + " late";
    if (tried.empty()) runs.why_not = "there was no time for it, or nothing happened in them";
  }

  // False: no run was made late. What is later than the bound says nothing.
  bool try_dose(ProofRuns& runs, Duration lateness, bool everywhere, bool is_bound = true) {
    Trial trial = recorded_trial(after_, lateness);
    if (everywhere) trial.plan = at_every_visit(trial.plan);
    now_ = fmt::format("when a thread is {} late{}", format_duration(lateness),
                       everywhere ? " at every visit" : "");
    bool any = false;
    for (int made = 0; made < runs_of_a_dose && !is_over();) {
      const auto results =
          run_some(after_, trial, Purpose::dose, std::min(at_once_, runs_of_a_dose - made));
      if (results.empty()) break;
      made += static_cast<int>(results.size());
      for (const ExperimentResult& result : results)
        any = take_dose(runs, trial, result, lateness, is_bound) || any;
    }
    return any;
  }

  bool take_dose(ProofRuns& runs, const Trial& trial, const ExperimentResult& result,
                 Duration lateness, bool is_bound) {
    if (!has_fired(trial.plan, result) || ran_into_delays(result)) return false;
    if (is_bound && result.outcome.failed() && lateness_in(result) > doses_.bound() * 11 / 10)
      return false;
    count_others_ = doses_.is_near(lateness);
    take(after_, result, runs.after, runs.other_failures_after);
    count_others_ = true;
    proof_.latest = std::max(proof_.latest, lateness);
    return true;
  }

  void plain() {
    ProofRuns& runs = begin(ProofKind::plain, "plain runs, in turns");
    now_ = "in plain runs";
    const Trial trial{{}, {}, "plain"};
    std::vector<double> ratios, times_before, times_after;
    while (runs.after.runs < options_.plain && !is_over()) {
      const auto pairs = run_pairs(trial, options_.plain - runs.after.runs);
      if (pairs.empty()) break;
      for (const Pair& pair : pairs) {
        take(pair, runs);
        const auto& [without, with] = pair;
        const bool passed_before = without.outcome.kind == OutcomeKind::pass;
        const bool passed_after = with.outcome.kind == OutcomeKind::pass;
        if (passed_before) times_before.push_back(to_ms(without.outcome.duration));
        if (passed_after) times_after.push_back(to_ms(with.outcome.duration));
        if (passed_before && passed_after && times_before.back() > 0 && times_after.back() > 0)
          ratios.push_back(std::log(times_after.back() / times_before.back()));
      }
    }
    proof_.median_before = from_ms(spread_of(times_before).median);
    proof_.median_after = from_ms(spread_of(times_after).median);
    measure_overhead(ratios);
  }

  void measure_overhead(const std::vector<double>& ratios) {
    if (ratios.empty()) return;
    const MiddleDifference middle = middle_difference(ratios);
    proof_.overhead_median = std::exp(middle.estimate);
    proof_.overhead = Interval{std::exp(middle.interval.low), std::exp(middle.interval.high)};
  }

  // Whether passing runs still come to the line that failed: by themselves, and where it failed.
  void check() {
    if (!before_.side.check) return;
    const auto reached_before = runs_at_check(before_, {});
    seen_.check_is_known = reached_before && reached_before->hits > 0;
    if (!seen_.check_is_known || !after_.side.check) return;  // changed: its teeth are looked at
    const std::string line = to_string(*after_.side.check);
    const auto reached = runs_at_check(after_, {});
    if (!reached)
      seen_.hollow =
          fmt::format("the failing check is no longer part of the program: {}", refused_);
    else if (reached->runs > 0 && reached->hits == 0)
      seen_.hollow = fmt::format(
          "the failing check is no longer reached: nobody comes to {} in {} with the patch", line,
          counted_runs(reached->runs));
    if (is_over() || !why_no_plan().empty() || repro_.is_under_control()) return;
    const auto under_plan = runs_at_check(after_, recorded_trial(after_, doses_.of_plan()));
    if (under_plan && under_plan->runs > 0 && under_plan->hits == 0)
      seen_.hollow = fmt::format(
          "the failing check is no longer reached where it failed: under the plan the test passes, "
          "and nobody comes to {}",
          line);
  }

  // Of runs that passed. Nothing: the line has no code.
  std::optional<Count> runs_at_check(SideRuns& side, Trial trial) {
    trial.why = "whether the check is reached";
    trial.plan.agent = true;
    const size_t number = trial.plan.interventions.size();
    Intervention watch;
    watch.site = *side.side.check;
    watch.action = Intervention::Action::watch;
    trial.plan.interventions.push_back(watch);
    Count reached;
    refused_.clear();
    for (int i = 0; i < 2 * runs_of_a_check && reached.runs < runs_of_a_check; ++i) {
      const auto result = run(side, trial, Purpose::look);
      if (!result && !refused_.empty()) return std::nullopt;
      if (!result) break;
      if (result->outcome.kind != OutcomeKind::pass || !result->trace) continue;
      if (!has_fired(trial.plan, *result)) continue;
      const auto& states = result->trace->interventions;
      reached.add(number < states.size() && states[number].visits > 0);
    }
    return reached;
  }

  // Whoever sleeps longer has bought time with time, and fails again when somebody is later by as
  // much: that is the same test with another margin.
  void bought() {
    const Duration added = proof_.median_after - proof_.median_before;
    if (added < least_bought || doses_.of_plan() == Duration{} || !why_no_plan().empty()) return;
    const Duration lateness = doses_.needed() + added * 5 / 4 + least_bought;
    if (lateness <= doses_.bound()) return;  // it was tried
    ProofRuns& runs =
        begin(ProofKind::later,
              "runs in which a thread is as late as the patch has made the test longer");
    try_dose(runs, lateness, false, false);
    runs.note = fmt::format("{} late: the patch makes the test {} longer",
                            format_duration(lateness), format_duration(added));
  }

  SampledSchedules::Options schedule_options(Duration latest, int most) const {
    SampledSchedules::Options options;
    options.most = most;
    options.budget = left();
    options.timeout = limit(after_, {});
    options.latest = latest;
    options.seed = options_.seed;
    options.at_once = fails_in_company_ ? 1 : options_.cores;
    return options;
  }

  Plan quiet_plan() const {
    Plan plan;
    plan.agent = true;
    plan.groups_off = repro_.plan.groups_off;
    plan.system_calls = repro_.plan.system_calls;
    return plan;
  }

  void schedules() {
    ProofRuns& runs = begin(ProofKind::schedules, "runs under sampled schedules");
    now_ = "under sampled schedules";
    const Duration whole = left();
    sample(
        before_, runs.before, runs.other_failures_before, runs,
        [&] { return runs.before.hits >= enough_before; }, whole / 3);
    if (!runs.why_not.empty()) return;
    const int too_late = sample(
        after_, runs.after, runs.other_failures_after, runs, [&] { return is_over(); }, left());
    seen_.beyond_bound = too_late;
    runs.note = fmt::format("threads up to {} late", format_duration(doses_.bound()));
    if (too_late > 0)
      runs.note += fmt::format("; {} failed with the patch only because more time than that passed",
                               too_late);
    proof_.latest = std::max(proof_.latest, doses_.bound());
  }

  int sample(SideRuns& side, Count& count, int& others, ProofRuns& runs, const Enough& enough,
             Duration time) {
    auto options = schedule_options(doses_.bound(), options_.schedules);
    options.budget = time;
    const Duration began = side.runner.elapsed();
    SampledSchedules sampled(side.runner, quiet_plan(), options);
    sampled([&](const ExperimentResult& result) {
      take(side, result, count, others);
      return enough();
    });
    spent_ += side.runner.elapsed() - began;
    if (count.runs == 0)
      runs.why_not = sampled.why_not().empty() ? "there was no time for it" : sampled.why_not();
    if (!sampled.not_repeatable().empty()) seen_.not_repeatable = sampled.not_repeatable();
    return sampled.too_late();
  }

  void loads() {
    for (const auto& [kind, load] : {std::pair{ProofKind::busy, LoadLevel::busy},
                                     std::pair{ProofKind::one_core, LoadLevel::one_core}}) {
      if (is_over()) return;
      ProofRuns& runs =
          begin(kind, kind == ProofKind::busy ? "runs on a busy machine" : "runs on one core");
      now_ = fmt::format("on {}", kind == ProofKind::busy ? "a busy machine" : "one core");
      const Trial trial{{}, conditions_for(load, options_.cores), "scarce processors"};
      while (runs.after.runs < options_.loaded && !is_over()) {
        const auto pairs = run_pairs(trial, options_.loaded - runs.after.runs);
        if (pairs.empty()) break;
        for (const Pair& pair : pairs) take(pair, runs);
      }
      if (runs.after.runs == 0) runs.why_not = "there was no time for it";
    }
  }

  // The patch may have moved what the plan acts on, so the failure is looked for anew. Without the
  // patch only where nothing else has shown that it can be found at all.
  void search_again() {
    ProofRuns& runs = begin(ProofKind::search, "a new search for the failure");
    const Duration time = std::min<Duration>(left() / 2, longest_search);
    if (!is_shown(proof_, seen_.beyond_bound) && !is_found(before_, time, runs.before).empty())
      runs.note = "without the patch it is found anew";
    const std::string found = is_found(after_, time, runs.after);
    if (found.empty()) return;
    ++seen_.recorded_after;
    seen_.when = "under another plan, which a new search has found: " + found;
  }

  // The plan under which it fails, in words; empty: none was found.
  std::string is_found(SideRuns& side, Duration time, Count& count) {
    HuntOptions options;
    if (&side == &before_)
      options.wanted.failure = repro_.failure;
    else if (options_.changed_check.empty())
      options.wanted.failure = options_.wanted;
    options.budget = time;
    options.timeout = limit(side, {});
    options.seed = options_.seed;
    options.groups_off = repro_.plan.groups_off;
    options.system_calls = repro_.plan.system_calls;
    const Duration began = side.side.executor.elapsed();
    const auto found = search_anew(side.side, options, doses_.bound());
    spent_ += side.side.executor.elapsed() - began;
    count.add(found.has_value());
    if (!found) return "";
    return fmt::format("{} ({} with it)", to_string(found->trial.plan, found->trial.conditions),
                       of_runs(found->with_plan));
  }

  void whole_binary() {
    ProofRuns& runs = begin(ProofKind::whole_binary, "all tests of the program, once");
    for (const SideRuns* side : {&before_, &after_})
      if (!side->side.whole) runs.why_not = side->side.why_not_whole;
    if (!runs.why_not.empty()) return;
    std::set<std::string> new_ones = fail_with_patch_only(runs);
    if (new_ones.empty() || is_over()) return;
    ProofRuns again;
    std::erase_if(new_ones, [still = fail_with_patch_only(again)](const std::string& name) {
      return !still.contains(name);
    });
    if (!new_ones.empty())
      seen_.others_fail = fmt::format("other tests of the program fail with the patch, twice: {}",
                                      join({new_ones.begin(), new_ones.end()}, ", "));
  }

  std::set<std::string> fail_with_patch_only(ProofRuns& runs) {
    const WholeRun without = run_whole(before_, runs.before, runs.other_failures_before);
    WholeRun with = run_whole(after_, runs.after, runs.other_failures_after);
    if (!without.has_ended || !with.has_ended) {
      runs.why_not = "it did not end in time";
      return {};
    }
    for (const std::string& name : without.others) with.others.erase(name);
    return with.others;
  }

  WholeRun run_whole(SideRuns& side, Count& count, int& others) {
    const Duration began = side.side.executor.elapsed();
    const WholeRun seen = run_whole_program(side.side, std::min(options_.timeout, left()));
    spent_ += side.side.executor.elapsed() - began;
    if (seen.has_ended) count.add(seen.recorded_failed);
    others = static_cast<int>(seen.others.size());
    return seen;
  }

  // A check that was rewritten may have been weakened. It has teeth when it fails once somebody is
  // later than anybody is patient.
  void teeth() {
    if (options_.changed_check.empty()) return;
    after_.runner.teller().say("whether the changed check can still fail");
    seen_.has_teeth = false;
    if (doses_.of_plan() > Duration{} && why_no_plan().empty() && fails_beyond(beyond_patience[0]))
      return;
    const Duration began = after_.runner.elapsed();
    SampledSchedules sampled(after_.runner, quiet_plan(),
                             schedule_options(beyond_patience[2], 200));
    sampled([&](const ExperimentResult& result) {
      seen_.has_teeth = seen_.has_teeth || is_failed_check(result.outcome);
      return seen_.has_teeth;
    });
    spent_ += after_.runner.elapsed() - began;
    if (doses_.of_plan() == Duration{} || !why_no_plan().empty()) return;
    for (const Duration lateness : {beyond_patience[1], beyond_patience[2]})
      if (seen_.has_teeth || fails_beyond(lateness)) return;
  }

  bool fails_beyond(Duration lateness) {
    const auto result = run(after_, recorded_trial(after_, lateness), Purpose::look);
    seen_.has_teeth = result && is_failed_check(result->outcome);
    return seen_.has_teeth;
  }

  static bool is_failed_check(const Outcome& outcome) {
    return outcome.failed() && outcome.kind != OutcomeKind::timeout;
  }

  Doses doses_;
};

}  // namespace

Result<Proof> prove(ProofSide& before, ProofSide& after, const ProofOptions& options) {
  return Prover(before, after, options)();
}

}  // namespace unflake
