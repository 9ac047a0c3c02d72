#include "search/detect/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr Duration least_search = 2s;       // a shorter one has no time to confirm anything
constexpr Duration first_patience = 250ms;  // of the first look at each
constexpr int runs_of_a_look = 5;           // that it may have on top
constexpr double share_of_first_looks = 0.9;
constexpr int shares_of_one = 4;  // of the time, where something is found: few are flaky
constexpr Duration longest_look_for_factors = 60s;
constexpr double runs_of_factors = 400;  // of which most are short of a full look
constexpr double of_lateness = 3;        // times as suspect, though it is told already

double detection_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

std::vector<RerunCandidate> candidates_of(const std::vector<DetectInput>& tests) {
  std::vector<RerunCandidate> all;
  for (const DetectInput& input : tests)
    all.push_back({to_string(input.test->id), input.seconds, input.suspicion});
  return all;
}

// Groups of calls that tell the time, or after which time may have passed or another thread may
// have gone on.
bool may_depend_on_time(const std::string& group) {
  return group == "sleep" || group == "condition" || group == "poll" || group == "timer" ||
         group == "clock";
}

// One run that tells all: functions, threads, and calls that wait.
Plan looking_plan(const DetectOptions& options) {
  Plan plan = base_plan(options.hunt);
  const Plan tracing = tracing_plan(options.functions);
  plan.functions = tracing.functions;
  plan.callees = tracing.callees;
  plan.library_functions = tracing.library_functions;
  return plan;
}

// Those that `reproduce` begins with; its last resorts take longer than one test of a suite gets.
std::vector<const Strategy*> usual_strategies() {
  std::vector<const Strategy*> chosen;
  for (const Strategy& strategy : strategies())
    if (strategy.by_default && !strategy.is_last_resort) chosen.push_back(&strategy);
  return chosen;
}

// A run that the budget ended has shown nothing.
bool was_cut_short(const ExperimentResult& result, Duration given, Duration timeout) {
  return given < timeout && result.process.end == ProcessResult::End::timed_out &&
         result.process.duration >= given;
}

}  // namespace

Detection::Detection(Executor& executor, EventStream& events, std::vector<DetectInput> tests,
                     const DetectOptions& options)
    : executor_(executor),
      events_(events),
      tests_(std::move(tests)),
      options_(options),
      budget_(executor, options.budget),
      exposure_(options_.known),
      scheduler_(candidates_of(tests_), options.prior, options.rerun) {
  for (const DetectInput& input : tests_) {
    Known known;
    known.result.id = input.test->id;
    known_.push_back(std::move(known));
  }
}

Result<void> Detection::operator()() {
  run_each_once();
  if (options_.perturb) {
    look_into_each();
    look_for_orders();
    perturb_suspects();
    for (size_t test = 0; test < tests_.size(); ++test) explain_flaky(test);
  }
  rerun();
  if (error_) return *error_;
  return {};
}

void Detection::say(const std::string& text) {
  events_.emit(SearchStep{"detect", text});
}

bool Detection::choose(size_t test) {
  if (!options_.choose) return true;
  const auto ready = options_.choose(test);
  if (ready) return true;
  known_[test].result.why = to_string(ready.error());
  scheduler_.leave(test);
  return false;
}

// False: it has shown nothing.
bool Detection::run_plain(size_t test) {
  if (is_over() || !choose(test)) return false;
  const DetectInput& input = tests_[test];
  const Duration given = std::min(input.timeout, budget_.left());
  events_.emit(RunStarted{input.test, known_[test].result.plain.runs() + 1});
  const auto result = executor_.run({input.test, {}, given});
  if (!result) {
    error_ = result.error();
    return false;
  }
  if (result->process.end == ProcessResult::End::cancelled) {
    stopped_ = true;
    return false;
  }
  if (was_cut_short(*result, given, input.timeout)) {
    known_[test].result.why =
        fmt::format("a run takes longer than the {} that were left", format_duration(given));
    scheduler_.leave(test);
    return false;
  }
  take_plain(test, *result);
  return true;
}

void Detection::take_plain(size_t number, const ExperimentResult& result) {
  Known& known = known_[number];
  const bool was_unveiled = scheduler_.is_unveiled(number);
  if (!has_started(result)) {
    known.result.why = result.process.error;
    return scheduler_.leave(number);
  }
  known.result.plain.add(result.outcome);
  known.in_plain_runs += result.outcome.duration;
  in_plain_runs_ += result.outcome.duration;
  ++plain_runs_;
  events_.emit(RunEnded{tests_[number].test, known.result.plain.runs(), {}, result});
  if (result.outcome.kind == OutcomeKind::skipped) {
    known.result.why = result.outcome.reason;
    return scheduler_.leave(number);
  }
  if (result.outcome.failed() && known.result.failure.empty()) {
    known.result.failure = headline_of(result.outcome);
    known.result.signature = result.outcome.signature;
  }
  scheduler_.add(number, result.outcome.failed(), detection_seconds(result.outcome.duration));
  tell_if_found(number, was_unveiled);
}

void Detection::tell_if_found(size_t number, bool was_unveiled) {
  if (was_unveiled || !scheduler_.is_unveiled(number)) return;
  DetectedTest& test = known_[number].result;
  test.found_after = test.found_after.value_or(budget_.elapsed());
  say(fmt::format("seen flaky: {} failed in {} of {} plain runs: {}", to_string(test.id),
                  test.plain.failures, test.plain.runs(), test.failure));
}

void Detection::run_each_once() {
  say(fmt::format("a plain run of each of {} tests", tests_.size()));
  // Short ones first, where that is known: a suite with one test of an hour begins with the rest.
  std::vector<size_t> order(tests_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t test) { return tests_[test].seconds; });
  for (const size_t test : order) run_plain(test);
}

void Detection::look_into_each() {
  if (is_over()) return;
  say("a traced run of each: which functions, threads and waits it has");
  std::vector<size_t> all;
  for (size_t test = 0; test < tests_.size(); ++test)
    if (known_[test].result.plain.passes + known_[test].result.plain.failures > 0)
      all.push_back(test);
  put_promising_first(all);
  const Duration until = budget_.elapsed() + budget_.left() / 4;
  for (const size_t test : all)
    if (!is_over() && budget_.elapsed() + mean_of(test) <= until) look_into(test);
  for (const size_t test : all)
    if (!known_[test].was_looked_into)
      tell_lack_of_time(test, "for a look at its threads and waits");
}

void Detection::look_into(size_t number) {
  if (!choose(number)) return;
  Known& known = known_[number];
  known.was_looked_into = true;
  known.result.lacked_time = false;
  TrialRunner runner(executor_, tests_[number].test, events_, budget_.left());
  runner.teller().begin("detect");
  const Trial trial{looking_plan(options_), {}, "which functions, threads and waits it has"};
  const auto seen = runner.run(trial, TrialEnded::Purpose::trace,
                               {std::min(tests_[number].timeout, budget_.left())});
  stopped_ = stopped_ || runner.stopped();
  known.can_be_looked_into = seen && has_started(seen->result) && seen->result.trace;
  if (!seen) return;
  ++trials_;
  ++known.result.trials;
  in_trials_ += seen->result.outcome.duration;
  if (known.can_be_looked_into)
    take_look(number, *seen->result.trace);
  else if (known.result.why.empty())
    known.result.why = "cannot be looked into: " + seen->result.process.error;
}

void Detection::take_look(size_t number, const Trace& trace) {
  DetectedTest& test = known_[number].result;
  test.threads = trace.threads.size();
  std::set<std::string> waits;
  for (const TracedVisits& visits : trace.visits)
    if (visits.site < trace.sites.size() && may_depend_on_time(trace.sites[visits.site].group))
      waits.insert(trace.sites[visits.site].group);
  test.waits.assign(waits.begin(), waits.end());
  const auto exposed = exposures(options_.functions, executed_functions(trace));
  for (const Exposure& one : exposed) test.hints.push_back(one.cause);
  scheduler_.suspect(number, exposure_.of(exposed).likelihood_ratio);
}

// What was seen flaky first, then by the chance to find something in a second of looking. A look
// takes about as long whatever the test's length, as it waits under control in no time.
void Detection::put_promising_first(std::vector<size_t>& tests) const {
  std::ranges::stable_sort(tests, {}, [&](size_t test) {
    const double looking = detection_seconds(patience_for(test, first_patience));
    return std::pair(!scheduler_.is_unveiled(test), -scheduler_.chance_flaky(test) / looking);
  });
}

// What could depend on timing.
std::vector<size_t> Detection::suspects() const {
  std::vector<size_t> all;
  for (size_t i = 0; i < tests_.size(); ++i) {
    const DetectedTest& result = known_[i].result;
    const bool depends = result.threads > 1 || !result.waits.empty();
    if (known_[i].can_be_looked_into && depends && result.plain.passes > 0) all.push_back(i);
  }
  put_promising_first(all);
  return all;
}

// A short look at each, then longer and longer ones at what is not finished: most of what fails
// when late does so soon, and most tests are sound. So the first looks may take longer.
void Detection::perturb_suspects() {
  std::vector<size_t> left = suspects();
  if (left.empty() || is_over()) return;
  say(fmt::format("schedules and delays for {} tests with threads or waits", left.size()));
  const auto until = [&](double share) {
    return budget_.elapsed() + std::chrono::duration_cast<Duration>(budget_.left() * share);
  };
  const Duration longer_ones_end = until(options_.perturb_share);
  left = look_for_lateness(left, first_patience, until(share_of_first_looks));
  for (Duration patience = 4 * first_patience; !left.empty(); patience *= 4) {
    left = look_for_lateness(left, patience, longer_ones_end);
    if (patience >= options_.longest_search) break;
  }
}

// Gives back those that are not finished, none when the time is over.
std::vector<size_t> Detection::look_for_lateness(const std::vector<size_t>& tests,
                                                 Duration patience, Duration ends) {
  std::vector<size_t> unfinished;
  for (size_t i = 0; i < tests.size(); ++i) {
    const Duration all = ends - budget_.elapsed();
    const Duration fair = shares_of_one * all / static_cast<int64_t>(tests.size() - i);
    const Duration time = std::min(
        {all, options_.longest_search, std::max(fair, 10 * patience_for(tests[i], patience))});
    if (is_over() || time < least_search) {
      tell_unsearched({tests.begin() + static_cast<std::ptrdiff_t>(i), tests.end()});
      return {};
    }
    if (!perturb(tests[i], time, patience_for(tests[i], patience))) unfinished.push_back(tests[i]);
  }
  return unfinished;
}

// In proportion to the length of a run, or hardly one would fit in.
Duration Detection::patience_for(size_t test, Duration patience) const {
  return patience + runs_of_a_look * mean_of(test);
}

Duration Detection::mean_of(size_t test) const {
  return known_[test].in_plain_runs / std::max(1, known_[test].result.plain.runs());
}

void Detection::tell_unsearched(const std::vector<size_t>& tests) {
  for (const size_t test : tests)
    if (!known_[test].result.was_searched)
      tell_lack_of_time(test, "to look for a schedule under which it fails");
}

void Detection::tell_lack_of_time(size_t number, const std::string& what) {
  DetectedTest& test = known_[number].result;
  test.lacked_time = true;
  if (test.why.empty()) test.why = "no time was left " + what;
}

bool Detection::perturb(size_t number, Duration time, Duration patience) {
  if (!choose(number)) return true;
  HuntOptions options = options_.hunt;
  options.budget = time;
  options.patience = patience;
  options.timeout = std::min(tests_[number].timeout, budget_.left());
  options.profile_runs = 2;
  options.runs_under_orders = 30;
  options.known_signatures = tests_[number].known_signatures;
  if (!known_[number].result.signature.empty())
    options.known_signatures.insert(known_[number].result.signature);
  Hunt hunt(executor_, tests_[number].test, options, events_);
  const Duration before = budget_.elapsed();
  if (hunt.prepare()) search(hunt, usual_strategies());
  in_trials_ += budget_.elapsed() - before;
  trials_ += hunt.runner().runs();
  known_[number].result.trials += hunt.runner().runs();
  known_[number].result.was_searched = true;
  known_[number].result.lacked_time = false;
  take_found(number, hunt);
  stopped_ = stopped_ || hunt.runner().stopped();
  if (hunt.runner().error()) error_ = hunt.runner().error();
  const bool lacked_time = hunt.coverage().unaffordable > 0 || !hunt.coverage().unfinished.empty();
  return !hunt.was_impatient() && !(hunt.found().empty() && lacked_time);
}

void Detection::take_found(size_t number, Hunt& hunt) {
  if (hunt.found().empty()) return;
  DetectedTest& test = known_[number].result;
  for (const Found& found : hunt.found()) {
    DetectOptions::Kept kept;
    kept.repro.test = test.id;
    kept.repro.plan = found.trial.plan;
    kept.repro.slack = found.slack;
    kept.repro.plausibility = found.plausibility;
    kept.repro.was_seen = found.was_seen;
    kept.repro.passes_under_plan = found.passes_under_plan;
    kept.repro.with_plan = found.with_plan;
    kept.repro.without_plan = found.without_plan;
    kept.repro.outcome = found.outcome.kind;
    kept.repro.signature = found.outcome.signature;
    if (!found.outcome.failures.empty()) kept.repro.failure = found.outcome.failures.front();
    if (options_.keep) {
      auto written = options_.keep(number, hunt, found);
      if (written)
        kept = std::move(*written);
      else
        notes_.push_back(to_string(written.error()));
    }
    const auto lateness = [](const Repro& repro) {
      return std::pair(repro.is_margin(), slack_of(repro).value_or(Duration::max()));
    };
    if (test.perturbed && lateness(*test.perturbed) <= lateness(kept.repro)) continue;
    test.perturbed = std::move(kept.repro);
    test.repro_file = std::move(kept.file);
  }
  if (!test.perturbed || test.is_margin()) return;
  test.found_after = test.found_after.value_or(budget_.elapsed());
  scheduler_.suspect(number, of_lateness);
  const auto slack = slack_of(*test.perturbed);
  const std::string when = test.perturbed->passes_under_plan ? ", unless " : ", when ";
  say(fmt::format(
      "fails when perturbed: {}{}", to_string(test.id),
      slack && *slack > Duration::zero() ? when + format_duration(*slack) + " late" : ""));
}

void Detection::look_for_orders() {
  if (is_over() || !options_.look_for_orders || tests_.size() < 2) return;
  say("orders of the whole suite: does a test depend on what ran before it?");
  const auto most = std::chrono::duration_cast<Duration>(budget_.left() * options_.orders_share);
  const Duration before = budget_.elapsed();
  auto ordered = options_.look_for_orders(most);
  if (!ordered) {
    notes_.push_back("orders: " + to_string(ordered.error()));
    return;
  }
  stopped_ = stopped_ || ordered->stopped;
  in_trials_ += budget_.elapsed() - before;
  trials_ += ordered->test_runs;
  notes_.insert(notes_.end(), ordered->notes.begin(), ordered->notes.end());
  for (DetectOptions::Kept& kept : ordered->found)
    for (size_t test = 0; test < tests_.size(); ++test)
      if (tests_[test].test->id == kept.repro.test && !known_[test].result.perturbed) {
        say("fails when in another order: " + kept.repro.reason);
        take_kept(test, std::move(kept));
        break;
      }
}

void Detection::take_kept(size_t number, DetectOptions::Kept kept) {
  DetectedTest& test = known_[number].result;
  test.perturbed = std::move(kept.repro);
  test.repro_file = std::move(kept.file);
  test.found_after = test.found_after.value_or(budget_.elapsed());
  known_[number].was_explained = true;
}

// What was seen flaky is asked for its cause, once: lateness, if nobody has looked for it, then
// factors of its surroundings.
void Detection::explain_flaky(size_t number) {
  Known& known = known_[number];
  if (is_over() || known.was_explained || !scheduler_.is_unveiled(number)) return;
  known.was_explained = true;
  if (!known.was_looked_into) look_into(number);
  const bool depends = known.result.threads > 1 || !known.result.waits.empty();
  if (!known.result.was_searched && known.can_be_looked_into && depends)
    perturb(number, std::min(options_.longest_search, budget_.left() / 4), Duration::max());
  if (!known.result.perturbed || known.result.is_margin()) look_for_factors_of(number);
}

void Detection::look_for_factors_of(size_t number) {
  if (is_over() || options_.factors.levels.empty() || !choose(number)) return;
  const auto useful = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(runs_of_factors * scheduler_.seconds(number)));
  const Duration most = std::min({longest_look_for_factors, budget_.left() / 4, useful + 5s});
  TrialRunner runner(executor_, tests_[number].test, events_, most);
  FactorOptions options;
  options.timeout = std::min(tests_[number].timeout, most);
  const Duration before = budget_.elapsed();
  FactorReport report = look_for_factors(runner, tests_[number].test, options_.factors, options);
  in_trials_ += budget_.elapsed() - before;
  trials_ += runner.runs();
  known_[number].result.trials += runner.runs();
  known_[number].result.factors_tried = report.levels;
  stopped_ = stopped_ || runner.stopped();
  if (runner.error()) error_ = runner.error();
  if (report.findings.empty() || !options_.keep_factor) return;
  auto kept = options_.keep_factor(report.findings.front());
  if (!kept) return notes_.push_back(to_string(kept.error()));
  say("depends on its surroundings: " + kept->repro.reason);
  take_kept(number, std::move(*kept));
}

void Detection::rerun() {
  if (is_over()) return;
  say("plain runs where they most likely show something");
  while (!is_over()) {
    const auto next = scheduler_.next(detection_seconds(budget_.left()));
    if (!next) {
      is_done_ = std::ranges::all_of(std::views::iota(size_t{0}, tests_.size()),
                                     [&](size_t test) { return scheduler_.is_done(test); });
      return;
    }
    if (!run_plain(*next)) scheduler_.leave(*next);
    if (options_.perturb) explain_flaky(*next);
  }
}

DetectedTest Detection::judged(size_t number) const {
  using Answer = DetectedTest::Answer;
  DetectedTest test = known_[number].result;
  const Tally& plain = test.plain;
  test.chance = scheduler_.chance_flaky(number);
  test.mean = mean_of(number);
  if (plain.passes > 0 && plain.failures > 0)
    test.answer = Answer::seen_flaky;
  else if (test.perturbed && !test.is_margin() && (plain.passes > 0 || test.perturbed->order))
    test.answer = Answer::fails_perturbed;
  else if (plain.failures > 0)
    test.answer = Answer::always_fails;
  else if (plain.passes > 0)
    test.answer = Answer::no_sign;
  else if (plain.skips > 0)
    test.answer = Answer::skipped;
  else if (test.why.empty())
    test.why = stopped_ ? "stopped before its turn" : "no time was left for a run";
  return test;
}

DetectReport Detection::report() const {
  DetectReport report;
  report.budget = options_.budget;
  report.elapsed = budget_.elapsed();
  report.in_plain_runs = in_plain_runs_;
  report.in_trials = in_trials_;
  report.plain_runs = plain_runs_;
  report.trials = trials_;
  report.stopped = stopped_;
  report.notes = notes_;
  if (is_done_)
    report.enough = fmt::format("every test is either seen flaky or bounded below {} at 95 %",
                                percent_at_most(options_.rerun.good_enough));
  for (size_t i = 0; i < tests_.size(); ++i) report.tests.push_back(judged(i));
  sort_by_answer(report.tests);
  return report;
}

}  // namespace unflake
