#include "search/repair/exact_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "stats/distribution.h"
#include "stats/plausibility.h"
#include "trace/happens_before.h"
#include "trace/names.h"
#include "trace/time_values.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using End = RepairRuns::End;

constexpr size_t most_looks_tried = 8;
constexpr int measuring_runs = 15;  // under each of the conditions
constexpr double tolerated = 0.001;
constexpr int room_in_percent = 110;  // of what is needed so rarely

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
  static size_t place_behind(const std::vector<ThreadStep>& steps, const ThreadStep& look) {
    const auto at = std::ranges::find(steps, look.call, &ThreadStep::call);
    return static_cast<size_t>(at - steps.begin()) + 1;
  }

  bool is_timing(const ThreadStep& step) const {
    return std::ranges::any_of(timing_,
                               [&](const ThreadStep& timing) { return timing.call == step.call; });
  }

  // Where there is nobody else, being late can only be a matter of time.
  bool is_of_time(const CriticalPoint& last) const {
    return is_timing(last.step) || question_.passing.threads.size() == 1;
  }

  // Whoever bounds a time must not be late anywhere up to the last look at a clock, and may be as
  // late as it likes after it. Whoever is late elsewhere has come too late for somebody else.
  bool fails_when_late_itself() {
    CriticalSearch search;
    search.steps =
        steps_of(question_.passing, thread_named(question_.passing, thread_), question_.lines);
    search.late.duration = question_.late;
    if (fails_around_the_plan(search)) return true;
    // The time begins with the first look after which it must not be late.
    for (size_t i = 0; i < timing_.size() && i < most_looks_tried; ++i) {
      search.from = place_behind(search.steps, timing_[i]);
      const auto last = find_critical(runs_, search);
      if (runs_.is_over() || (last && !is_of_time(*last))) return false;
      if (last) return keep_time(i, *last);
    }
    return false;
  }

  // The plan knows a place within the time: its beginning is the last look before that, or an
  // earlier one behind which it fails, too.
  bool fails_around_the_plan(CriticalSearch& search) {
    if (!question_.behind) return false;
    const auto is_behind = [&](const ThreadStep& look) {
      return place_behind(search.steps, look) <= *question_.behind;
    };
    const auto after = std::ranges::partition_point(timing_, is_behind);
    if (after == timing_.begin()) return false;
    size_t first = static_cast<size_t>(after - timing_.begin()) - 1;
    search.from = *question_.behind;
    const auto last = find_critical(runs_, search);
    if (!last || !is_of_time(*last)) return false;
    for (size_t low = 0; low < first && !runs_.is_over();) {
      const size_t middle = low + (first - low) / 2;
      if (fails_behind(search, timing_[middle]))
        first = middle;
      else
        low = middle + 1;
    }
    return !runs_.is_over() && keep_time(first, *last);
  }

  bool fails_behind(const CriticalSearch& search, const ThreadStep& look) {
    CriticalSearch one = search;
    const size_t place = place_behind(search.steps, look);
    if (place >= search.steps.size()) return false;
    one.steps = {search.steps[place]};
    one.from = 0;
    return find_critical(runs_, one).has_value();
  }

  bool keep_time(size_t first, const CriticalPoint& last) {
    timing_.erase(timing_.begin(), timing_.begin() + static_cast<long>(first));
    std::erase_if(timing_, [&](const ThreadStep& step) { return step.at > last.step.at; });
    itself_ = last.late;
    found_.evidence.push_back(fmt::format(
        "it fails when {} itself is {} late before it comes to {}, and not after that", thread_,
        format_duration(question_.late), step_words(question_.passing, last.step)));
    return !timing_.empty();
  }

  void tell_times() {
    for (const ThreadStep& step : timing_) {
      const TracedCall& call = question_.passing.calls[step.call];
      if (reads_clock(question_.passing.sites[call.site])) continue;
      found_.constant = place_of(step);
      found_.asked = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(call.value));
      found_.evidence.push_back("a timed wait, " + step_words(question_.passing, step) +
                                ", runs out when it fails, and not when it passes");
      return;
    }
    found_.evidence.push_back(fmt::format("{} reads a clock, first {} and last {}", thread_,
                                          step_words(question_.passing, timing_.front()),
                                          step_words(question_.passing, timing_.back())));
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
        const RepairRuns::Run run = runs_.run(trial, RepairRuns::Purpose::baseline);
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
    if (worst > 0) propose(found_.at_tolerance);
  }

  // 1132 ms -> 1500 ms: nobody believes more digits.
  static Duration rounded_up(Duration wanted) {
    for (Duration unit = 1ms;; unit *= 10)
      for (const int tenths : {10, 15, 20, 30, 50})
        if (unit * tenths / 10 >= wanted && (unit >= 10ms || tenths % 10 == 0))
          return unit * tenths / 10;
  }

  // On a machine that is badly overloaded, too. Below the bound that is there nothing is gained.
  void propose(Duration rarely_more) {
    const Duration late = limits_of(question_.machine).overloaded;
    const Duration holds = std::max(rarely_more + late, found_.median + found_.fails);
    found_.proposed = rounded_up(holds * room_in_percent / 100);
  }

  RepairRuns& runs_;
  const TimingQuestion& question_;
  const std::string thread_;
  std::vector<ThreadStep> timing_;
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

std::optional<GuessedWait> wait_that_ran_out(const Trace& passing, const Trace& failing,
                                             const RepairLines& lines) {
  std::optional<GuessedWait> last;
  for (const ThreadStep& step : timing_steps(passing, failing, failing_thread_of(failing), lines)) {
    const TracedCall& call = passing.calls[step.call];
    const auto ran_out = [&](const TracedCall& each) {
      return each.timed_out && each.site == call.site && each.thread == call.thread;
    };
    // What runs out in passing runs, too, is a pause and not patience.
    if (reads_clock(passing.sites[call.site]) || call.value < 0 ||
        std::ranges::any_of(passing.calls, ran_out))
      continue;
    last = GuessedWait{place_of(step), meant_time(call.value), false};
  }
  return last;
}

std::optional<ExactTiming> recognise_exact_timing(RepairRuns& runs,
                                                  const TimingQuestion& question) {
  return ExactTimingSearch(runs, question)();
}

}  // namespace unflake
