#include "search/repair/exact_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "stats/distribution.h"
#include "trace/happens_before.h"
#include "trace/names.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using End = RepairRuns::End;

constexpr size_t most_places_late = 4;
constexpr int runs_of_a_place = 2;
constexpr int measuring_runs = 15;  // under each of the conditions
constexpr double tolerated = 0.001;
constexpr double room = 1.25;  // above what is needed so rarely
constexpr double ms_per_us = 0.001;

bool reads_clock(const TracedSite& site) {
  return site.group == "clock";
}

std::string failing_thread_of(const Trace& failing) {
  const TracedFailure* failure = main_failure(failing);
  const bool is_known = failure && failure->thread < failing.threads.size();
  return is_known ? failing.threads[failure->thread].name.text : "main";
}

class ExactTimingSearch {
 public:
  ExactTimingSearch(RepairRuns& runs, const TimingQuestion& question)
      : runs_(runs),
        question_(question),
        thread_(failing_thread_of(question.failing)),
        timing_(timing_steps(question.passing, question.failing, thread_, question.lines)) {}

  std::optional<ExactTiming> operator()() {
    if (timing_.empty()) return std::nullopt;
    runs_.say(fmt::format("no order helps: is it {} itself that must not be late?", thread_));
    if (!fails_when_late_itself()) return std::nullopt;
    if (question_.is_order && question_.is_order(*itself_)) return std::nullopt;
    tell_times();
    if (question_.slack) {
      found_.passes = question_.slack->passes;
      found_.fails = question_.slack->fails;
    }
    measure();
    return std::move(found_);
  }

 private:
  // Evenly over what it does from the first look at a clock on.
  std::vector<ThreadStep> places() const {
    std::vector<ThreadStep> steps =
        steps_of(question_.passing, thread_named(question_.passing, thread_), question_.lines);
    std::erase_if(steps, [&](const ThreadStep& step) {
      return step.at <= timing_.front().at || step.at > timing_.back().at;
    });
    std::vector<ThreadStep> chosen;
    for (size_t i = 0; i < most_places_late && !steps.empty(); ++i) {
      const ThreadStep& step = steps[steps.size() * i / most_places_late];
      if (chosen.empty() || chosen.back().call != step.call) chosen.push_back(step);
    }
    return chosen;
  }

  bool fails_at(const ThreadStep& step) {
    Intervention late;
    late.duration = question_.late;
    Trial trial = runs_.test().passing;
    trial.plan.agent = true;
    trial.plan.interventions = {late_before(late, step)};
    trial.why = fmt::format("{} itself late at {}", thread_, to_string(step.site));
    for (int i = 0; i < runs_of_a_place; ++i)
      if (runs_.most_of(trial) != End::failed) return false;
    if (!itself_) itself_ = trial.plan.interventions.front();
    return true;
  }

  bool fails_when_late_itself() {
    int failed = 0, tried = 0;
    for (const ThreadStep& step : places()) {
      if (runs_.is_over()) return false;
      failed += fails_at(step);
      ++tried;
    }
    found_.evidence.push_back(
        fmt::format("it fails when {} itself is {} late, at {} of {} places before the check",
                    thread_, format_duration(question_.late), failed, tried));
    return failed > 0 && 2 * failed >= tried;
  }

  void tell_times() {
    for (const ThreadStep& step : timing_) {
      const TracedCall& call = question_.passing.calls[step.call];
      if (reads_clock(question_.passing.sites[call.site])) continue;
      found_.constant = place_of(step);
      found_.asked = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(call.value));
      found_.evidence.push_back("a timed wait at " + to_string(step.site) +
                                " runs out when it fails, and not when it passes");
      return;
    }
    found_.evidence.push_back(fmt::format("{} reads a clock at {}, the last time at {}", thread_,
                                          to_string(timing_.front().site),
                                          to_string(timing_.back().site)));
  }

  // From the first look at the clock to the last one; of a wait, how long it took.
  std::optional<Duration> measured_in(const Trace& trace) const {
    const uint32_t thread = thread_named(trace, thread_);
    std::optional<Duration> from, to;
    for (const ThreadStep& step : steps_of(trace, thread, question_.lines)) {
      if (step.site == timing_.front().site && step.visit == timing_.front().visit) from = step.at;
      if (step.site == timing_.back().site && step.visit == timing_.back().visit)
        to = found_.constant ? trace.calls[step.call].exit : step.at;
    }
    if (found_.constant) from = from ? from : to;
    return from && to && *to > *from ? std::optional(*to - *from) : std::nullopt;
  }

  void measure() {
    std::vector<double> all;
    Conditions busy, alone;
    busy.competitors = 2;
    alone.one_core = true;
    double worst = 0;
    for (const Conditions& conditions : {Conditions{}, busy, alone}) {
      std::vector<double> times;
      Trial trial = runs_.test().passing;
      trial.plan.agent = trial.plan.calls = true;
      trial.conditions = conditions;
      trial.why = "how long it takes";
      for (int i = 0; i < measuring_runs; ++i) {
        const RepairRuns::Run run = runs_.run(trial, RepairRuns::Purpose::look);
        if (!run.ended()) return;
        const auto time = run.result.trace ? measured_in(*run.result.trace) : std::nullopt;
        if (time) times.push_back(static_cast<double>(time->count()));
      }
      worst = std::max(worst, tail_quantile(times, tolerated));
      if (all.empty()) all = times;
    }
    const Spread spread = spread_of(all);
    found_.measured = static_cast<int>(spread.count);
    found_.median = Duration(static_cast<int64_t>(spread.median));
    found_.longest = Duration(static_cast<int64_t>(spread.max));
    found_.at_tolerance = Duration(static_cast<int64_t>(worst));
    if (worst > 0) found_.proposed = rounded_up(worst * room * ms_per_us);
  }

  static Duration rounded_up(double ms) {
    return std::chrono::milliseconds(static_cast<int64_t>(ms) + 1);
  }

  RepairRuns& runs_;
  const TimingQuestion& question_;
  const std::string thread_;
  const std::vector<ThreadStep> timing_;
  std::optional<Intervention> itself_;  // late, and it fails
  ExactTiming found_;
};

}  // namespace

std::vector<ThreadStep> timing_steps(const Trace& passing, const Trace& failing,
                                     const std::string& thread, const RepairLines& lines) {
  std::map<SiteName, bool> ran_out;  // in the failing run
  for (const TracedCall& call : failing.calls)
    if (call.site < failing.sites.size() && call.thread == thread_named(failing, thread))
      ran_out[failing.sites[call.site].name] |= call.timed_out;
  std::vector<ThreadStep> steps;
  for (ThreadStep& step : steps_of(passing, thread_named(passing, thread), lines)) {
    const TracedCall& call = passing.calls[step.call];
    const TracedSite& site = passing.sites[call.site];
    const bool is_time_out = may_wait(site) && takes_time(site) && !is_sleep(site) &&
                             !call.timed_out && ran_out[site.name];
    if (reads_clock(site) || is_time_out) steps.push_back(std::move(step));
  }
  return steps;
}

std::optional<ExactTiming> recognise_exact_timing(RepairRuns& runs,
                                                  const TimingQuestion& question) {
  return ExactTimingSearch(runs, question)();
}

}  // namespace unflake
