#include "search/trial/trial_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "stats/rates.h"
#include "util/paths.h"

namespace unflake {

bool acts(const Intervention& intervention) {
  return intervention.action != Intervention::Action::watch;
}

namespace {

// Who did not have to wait came there when the other one had passed.
bool was_kept_anyway(const Plan& plan, size_t number, const Trace& trace) {
  const Intervention& hold = plan.interventions[number];
  if (hold.action != Intervention::Action::hold || !hold.until ||
      hold.visits != Intervention::Visits::only_nth || *hold.until >= trace.interventions.size())
    return false;
  return trace.interventions[number].visits >= hold.nth &&
         trace.interventions[*hold.until].visits >= hold.count;
}

}  // namespace

bool has_fired(const Plan& plan, const ExperimentResult& result) {
  bool has_delays = false;
  for (size_t i = 0; i < plan.interventions.size(); ++i) {
    if (!acts(plan.interventions[i])) continue;
    has_delays = true;
    if (result.trace && i < result.trace->interventions.size() &&
        (result.trace->interventions[i].fired > 0 || was_kept_anyway(plan, i, *result.trace)))
      return true;
  }
  return !has_delays;
}

bool has_started(const ExperimentResult& result) {
  return result.process.end != ProcessResult::End::not_started;
}

std::string site_text(const Intervention& intervention) {
  return to_string(intervention.site) + "@" + intervention.thread.text;
}

std::string text_of(const Trial& trial) {
  std::string text = to_string(trial.conditions);
  for (const Intervention& intervention : trial.plan.interventions)
    text += " " + intervention.executable + "!" + to_string(intervention, trial.plan.interventions);
  if (trial.plan.schedule) text += " " + to_string(*trial.plan.schedule);
  return text;
}

std::string headline_of(const Outcome& outcome) {
  if (outcome.failures.empty()) return std::string(to_string(outcome.kind));
  return headline(outcome.failures.front());
}

bool ran_into_delays(const ExperimentResult& result) {
  if (result.outcome.kind != OutcomeKind::timeout || !result.trace) return false;
  Duration added{};
  for (const TracedIntervention& state : result.trace->interventions) added += state.added;
  return 2 * added > result.outcome.duration;
}

Duration lateness_in(const ExperimentResult& result) {
  if (!result.trace) return Duration::zero();
  Duration failed = Duration::max();
  for (const TracedFailure& failure : result.trace->failures)
    if (failure.kind != "thrown before") failed = std::min(failed, failure.at);
  std::map<uint32_t, Duration> late;
  for (const TracedCall& call : result.trace->calls) {
    if (!call.is_intervention || call.enter >= failed) continue;
    const auto asked = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(call.value));
    late[call.thread] += call.unfinished ? asked : call.exit - call.enter;
  }
  Duration most{};
  for (const auto& [thread, added] : late) most = std::max(most, added);
  return most;
}

bool failed_at(const ExperimentResult& result, const Failure& wanted) {
  if (!result.trace) return false;
  const auto is_there = [&](const Frame& frame) { return is_same_line(frame, wanted); };
  return std::ranges::any_of(result.trace->failures, [&](const TracedFailure& failure) {
    return std::ranges::any_of(failure.stack.frames, [&](const TracedFrame& frame) {
      return std::ranges::any_of(frame.source, is_there);
    });
  });
}

bool names_line(std::string_view text, const Failure& wanted) {
  const std::string line = std::to_string(wanted.line);
  const std::string file = base_name(wanted.file);
  if (file.empty()) return false;
  for (const std::string_view between : {":", "(", " on line ", " line ", ", line "}) {
    const std::string name = file + std::string(between) + line;
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
      const size_t end = at + name.size();
      if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
    }
  }
  return false;
}

namespace {

constexpr Duration least_limit = std::chrono::milliseconds(1);  // of a run

}  // namespace

void TrialTeller::begin(std::string strategy, std::string about) {
  strategy_ = std::move(strategy);
  about_ = std::move(about);
  announced_.clear();
}

void TrialTeller::tell_announced() {
  for (std::string* text : {&about_, &announced_})
    if (!text->empty()) events_.emit(SearchStep{strategy_, std::exchange(*text, "")});
}

void TrialTeller::say(const std::string& text) {
  tell_announced();
  events_.emit(SearchStep{strategy_, text});
}

void TrialTeller::tell(TrialEnded ended) {
  ended.test = test_;
  ended.strategy = strategy_;
  ended.number = ++told_[ended.purpose];
  events_.emit(std::move(ended));
}

TrialRunner::TrialRunner(Executor& executor, std::shared_ptr<const Test> test, EventStream& events,
                         Duration budget)
    : executor_(executor),
      test_(std::move(test)),
      teller_(test_, events),
      budget_(executor, budget) {}

Ticket TrialRunner::start(const Trial& trial, const TrialLimit& limit) {
  Experiment experiment{trial.tests.value_or(TestOrder(test_)), trial.plan, limit.timeout,
                        limit.keep_leftovers};
  experiment.conditions = trial.conditions;
  // Thousands of runs of milliseconds, or one of each of thousands of tests.
  experiment.fork_server =
      trial.is_one_of_many || trial.plan.schedule.has_value() || is_function_trace(trial.plan);
  teller_.tell_announced();
  ++runs_;
  ++running_;
  return executor_.start(experiment);
}

// When somebody asks to stop, what runs is waited for and says nothing: it may have been cut off.
std::optional<Finished> TrialRunner::next_finished() {
  while (running_ > 0) {
    Wakeup wakeup = executor_.wait();
    if (auto* finished = std::get_if<Finished>(&wakeup)) {
      --running_;
      if (finished->result.process.end == ProcessResult::End::cancelled) stopped_ = true;
      if (!stopped_) return std::move(*finished);
    } else if (const auto* broken = std::get_if<Broken>(&wakeup)) {
      error_ = broken->error;
      return std::nullopt;
    } else if (std::holds_alternative<Stopped>(wakeup)) {
      stopped_ = true;
      executor_.cancel_all();
    }
  }
  return std::nullopt;
}

Observation TrialRunner::observed(const Trial& trial, ExperimentResult result,
                                  Duration limit) const {
  Observation seen;
  seen.limit = limit;
  seen.fired = has_fired(trial.plan, result);
  seen.hit = aim_.is_hit ? aim_.is_hit(trial, result) : result.outcome.failed();
  seen.result = std::move(result);
  return seen;
}

void TrialRunner::believe(const Trial& trial, Purpose purpose, const ExperimentResult& result) {
  tell(trial, purpose, observed(trial, result, result.outcome.duration));
}

void TrialRunner::tell(const Trial& trial, Purpose purpose, const Observation& seen) {
  counts_[purpose].add(seen.hit);
  TrialEnded told;
  told.purpose = purpose;
  told.why = trial.why;
  told.plan = trial.plan;
  told.conditions = trial.conditions;
  told.result = seen.result;
  told.hit = seen.hit;
  told.fired = seen.fired;
  told.wants_pass = aim_.wants_pass;
  teller_.tell(std::move(told));
}

std::optional<Observation> TrialRunner::run(const Trial& trial, Purpose purpose,
                                            const TrialLimit& limit) {
  const Duration given = std::min(limit.timeout, std::max(limit.share, least_limit));
  cut_short_.reset();
  if (has_ended()) return std::nullopt;
  start(trial, {given, given, limit.keep_leftovers});
  auto finished = next_finished();
  if (!finished) return std::nullopt;
  ExperimentResult& result = finished->result;
  const bool used_it_up = result.process.end == ProcessResult::End::timed_out &&
                          result.process.duration >= given;  // a deadlock is told at once
  if (given < limit.timeout && used_it_up) {
    cut_short_ = std::move(result);
    return std::nullopt;
  }
  Observation seen = observed(trial, std::move(result), given);
  tell(trial, purpose, seen);
  return seen;
}

void TrialRunner::run_each(Purpose purpose, Duration timeout, int at_once, const Next& next,
                           const Take& take) {
  std::map<Ticket, Trial> running;
  const auto start_some = [&] {
    while (running_ < at_once && !has_ended() && !budget_.is_spent() &&
           executor_.free_slots() > 0) {
      const auto trial = next();
      if (!trial) return;
      running.emplace(start(*trial, {timeout}), *trial);
    }
  };
  for (;;) {
    start_some();
    auto finished = next_finished();
    if (!finished) return;
    const Trial trial = std::move(running.extract(finished->ticket).mapped());
    const Observation seen = observed(trial, std::move(finished->result), timeout);
    tell(trial, purpose, seen);
    take(trial, seen);
  }
}

int TrialRunner::run_series(const Trial& trial, Purpose purpose, Duration timeout,
                            const Series& series, const Enough& enough) {
  int started = 0;
  bool is_enough = false;
  run_each(
      purpose, timeout, series.at_once,
      [&]() -> std::optional<Trial> {
        if (is_enough || started >= series.most) return std::nullopt;
        ++started;
        return trial;
      },
      [&](const Trial&, const Observation& seen) { is_enough = enough(seen) || is_enough; });
  return started;
}

Count TrialRunner::counted(Purpose purpose) const {
  const auto found = counts_.find(purpose);
  return found == counts_.end() ? Count{} : found->second;
}

namespace {

constexpr double significance = 0.05;
constexpr int most_confirming_runs = 40;

}  // namespace

bool BaseRate::add(const TrialLimit& limit) {
  auto seen = runner_.run(plain_, TrialEnded::Purpose::baseline, limit);
  if (!seen) return false;
  outcomes_.push_back(std::move(seen->result.outcome));
  return true;
}

Count BaseRate::count(const std::function<bool(const Outcome&)>& is_hit) const {
  Count count;
  for (const Outcome& outcome : outcomes_) count.add(is_hit(outcome));
  return count;
}

Confirmation::Confirmation(int candidates, int hits_before, double least_share)
    : allowed_(significance / std::max({1, candidates, (hits_before + 1) * (hits_before + 2)})),
      least_share_(least_share) {}

// It cannot come in three of five any more.
bool Confirmation::is_lost(int runs) const {
  return with_plan_.misses() > runs * (1 - least_share_) + 1e-9;
}

void Confirmation::make_runs(const Runs& make, int runs) {
  without_plan_ = make.without_plan(0);
  while (with_plan_.runs < runs) {
    const auto came = make.with_plan();
    if (!came) break;
    with_plan_.add(*came);
    if (is_lost(runs)) return;
  }
  without_plan_ = make.without_plan(runs);
}

std::optional<Confirmation::Answer> Confirmation::look(int number, int runs) const {
  if (with_plan_.hits < with_plan_.runs * least_share_ - 1e-9) return Answer::does_not;
  const int both = std::min(with_plan_.runs, without_plan_.runs);
  const double p = fisher_more_often(with_plan_, without_plan_);
  if (both >= group_of_runs && p <= allowed_ / (number * (number + 1))) return Answer::holds;
  if (both < runs) return Answer::no_time;
  return std::nullopt;
}

Confirmation::Answer Confirmation::operator()(const Runs& runs) {
  for (int number = 1; with_plan_.runs < most_confirming_runs; ++number) {
    const int wanted = std::max(group_of_runs, 2 * with_plan_.runs);
    make_runs(runs, wanted);
    if (runs.has_ended()) return Answer::ended;
    if (const auto answer = look(number, wanted)) return *answer;
  }
  return Answer::does_not;
}

}  // namespace unflake
