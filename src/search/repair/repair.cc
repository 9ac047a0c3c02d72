#include "search/repair/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "search/repair/exact_timing.h"
#include "search/reproduce/shrink.h"
#include "trace/happens_before.h"
#include "trace/names.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Action = Intervention::Action;
using End = RepairRuns::End;

constexpr Duration least_lateness = 50ms;
constexpr Duration shortest_bound = 1s, longest_bound = 10s;
constexpr Duration short_enough = 200ms;
constexpr int shorter_by = 4;
constexpr int runs_of_delays = 3;  // that must all fail in place of others
constexpr int runs_of_stop_gap = 5;
constexpr int quick_runs = 3;           // of an order, before it is verified
constexpr int noisy_quick_runs = 6;     // where half of the runs would pass anyway
constexpr int most_visits_tried = 3;    // of one place
constexpr size_t most_times_tried = 4;  // at which a thread is late

bool has_holds(const Plan& plan) {
  return std::ranges::any_of(plan.interventions,
                             [](const Intervention& one) { return one.action == Action::hold; });
}

// The same threads late at the same places, whatever the others do.
Plan as_delays(const Plan& plan, Duration late) {
  Plan delays = plan;
  delays.interventions.clear();
  for (Intervention one : plan.interventions) {
    if (one.action == Action::watch) continue;
    if (one.action == Action::hold) {
      one.action = Action::delay;
      one.duration = late;
    }
    one.until.reset();
    one.anchor.reset();
    one.count = 1;
    delays.interventions.push_back(one);
  }
  return delays;
}

uint64_t passes_until(const Trace& trace, const ThreadStep& step) {
  uint64_t passes = 0;
  for (const TracedCall& call : trace.calls)
    passes += !call.is_intervention && call.site < trace.sites.size() && call.enter <= step.at &&
              trace.sites[call.site].name == step.site;
  return std::max<uint64_t>(1, passes);
}

std::string short_name(const ThreadStep& step) {
  return to_string(step.site) + "@" + step.thread.text;
}

class RepairSearch {
 public:
  RepairSearch(RepairRuns& runs, const RepairOptions& options,
               const std::function<void(const EnforcedRepair&)>& found)
      : runs_(runs), options_(options), limits_(options.verification), tell_found_(found) {}

  RepairReport operator()() {
    report_.method = "short cut";
    runs_.runner().teller().begin("repair", "what came too late, and what has to wait for it");
    if (record_runs() && report_.deadlock.empty()) {
      search();
      if (!is_done() && !is_other_side_) ask_for_timing();
      if (!is_done() && !is_other_side_ && !report_.exact_timing) find_stop_gap();
    }
    return finished();
  }

 private:
  // ---- What a passing and a failing run look like ----

  // An order that makes the test fail would fight with one that repairs it; lateness does not.
  void replace_order() {
    if (!has_holds(runs_.test().failing.plan)) return;
    for (const Duration late : {100ms, 500ms}) {
      Trial trial = runs_.test().failing;
      trial.plan = as_delays(trial.plan, late);
      trial.why = "late by " + format_duration(late) + " instead of held";
      if (!fails_every_time(trial)) continue;
      runs_.test().failing = trial;
      return;
    }
    report_.notes.push_back(
        "the failure takes an order of threads that no delay gives: the repair was tried against "
        "that order, which then cannot be kept");
  }

  bool fails_every_time(const Trial& trial) {
    int failed = 0;
    while (failed < runs_of_delays && runs_.run(trial).end == End::failed) ++failed;
    return failed == runs_of_delays;
  }

  // Hundreds of runs follow, each as late as this.
  void shorten_delays() {
    while (longest_delay(runs_.test().failing.plan) > short_enough && !runs_.is_over()) {
      Trial trial = runs_.test().failing;
      trial.plan = with_longest_delay(trial.plan, longest_delay(trial.plan) / shorter_by);
      trial.why = "less late";
      if (!fails_every_time(trial)) return;
      runs_.test().failing = trial;
    }
  }

  bool record_runs() {
    replace_order();
    shorten_delays();
    auto failing = runs_.record(runs_.test().failing, nullptr, End::failed);
    if (!failing) return missing("fail as recorded under the plan");
    report_.deadlock = lock_cycle(*failing->trace);
    auto passing = runs_.record(runs_.test().passing, nullptr, End::passed);
    if (!passing) return missing("pass without the plan");
    if (options_.compare) named_barriers_ = options_.compare(*passing, *failing);
    lines_.emplace(std::vector<const Trace*>{failing->trace.get(), passing->trace.get()},
                   runs_.test().lines);
    runs_.say(fmt::format("{} lines of the project's code may matter", lines_->size()));
    failing_ = runs_.record(runs_.test().failing, &*lines_, End::failed);
    passing_ = runs_.record(runs_.test().passing, &*lines_, End::passed);
    if (failing_ && passing_) return true;
    report_.notes.push_back("with lines watched the test ends differently: calls alone were tried");
    lines_.emplace(std::vector<const Trace*>{}, runs_.test().lines);
    failing_ = std::move(failing);
    passing_ = std::move(passing);
    return true;
  }

  bool missing(const std::string& what) {
    if (!runs_.is_over())
      report_.notes.push_back("the test did not " + what + " in any run with its calls recorded");
    return false;
  }

  const Trace& failing() const { return *failing_->trace; }
  const Trace& passing() const { return *passing_->trace; }
  bool is_inverted() const { return runs_.test().failing.plan.interventions.empty(); }

  // ---- What came too late ----

  void search() {
    late_ = late_threads(runs_.test().failing.plan, failing());
    set_bound();
    if (late_.empty()) return hold_without_lateness();
    for (const LateThread& late : late_) find_critical_of(late);
    for (const CriticalPoint& critical : criticals_) {
      if (is_done()) return;
      try_barriers({critical});
    }
    if (criticals_.size() > 1 && !is_done()) try_barriers(criticals_);
    for (const CriticalPoint& critical : weaker_)
      if (!is_done()) try_barriers({critical});
  }

  bool is_done() const { return !report_.repairs.empty() || runs_.is_over(); }

  void set_bound() {
    Duration late{};
    for (const LateThread& one : late_) late = std::max(late, one.by);
    limits_.bound =
        std::clamp(4 * (late + passing_->outcome.duration), shortest_bound, longest_bound);
  }

  uint32_t in_passing(const std::string& name) const {
    const uint32_t same = thread_named(passing(), name);
    if (same != no_index) return same;
    for (uint32_t i = 0; i < passing().threads.size(); ++i)
      if (thread_class_of(passing().threads[i].name.text) == thread_class_of(name)) return i;
    return no_index;
  }

  // A plan may make a thread late again and again, and only one time matters: most likely the last.
  static std::vector<size_t> times_to_try(const LateThread& late) {
    std::vector<size_t> times(late.behind.rbegin(), late.behind.rend());
    times.erase(std::ranges::unique(times).begin(), times.end());
    if (times.size() > most_times_tried)
      times.erase(times.begin() + most_times_tried - 1, times.end() - 1);
    return times;
  }

  static std::string counted_steps(const CriticalSearch& search) {
    const size_t steps = search.steps.size() - std::min(search.steps.size(), search.from);
    return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
  }

  // Which thread of a class comes there differs from run to run.
  void find_in_class(CriticalSearch& search, LateThread& late) const {
    const std::string wanted = to_string(search.late.site);
    for (uint32_t i = 0; i < passing().threads.size(); ++i) {
      if (thread_class_of(passing().threads[i].name.text) != thread_class_of(late.name)) continue;
      auto steps = steps_of(passing(), i, *lines_, true);
      const auto there = std::ranges::find_if(steps, [&](const ThreadStep& step) {
        return to_string(step.site) == wanted &&
               (search.late.visits != Intervention::Visits::only_nth ||
                step.visit == search.late.nth);
      });
      if (there == steps.end()) continue;
      late.behind = {static_cast<size_t>(there - steps.begin())};
      search.steps = std::move(steps);
      return;
    }
  }

  void find_critical_of(LateThread late) {
    const uint32_t thread = in_passing(late.name);
    if (thread == no_index || late.interventions.empty()) return;
    const Plan& plan = runs_.test().failing.plan;
    CriticalSearch search;
    search.late = plan.interventions[late.interventions.front()];
    search.late.duration = std::max(late.by, least_lateness);
    search.whole_class = search.late.threads == Intervention::Threads::in_class;
    search.steps = steps_of(passing(), thread, *lines_, search.whole_class);
    if (search.whole_class) find_in_class(search, late);
    std::optional<CriticalPoint> found;
    // Whoever is enough alone is looked at alone: with others late it fails at any of its steps.
    for (const bool alone : {true, false}) {
      search.others = alone ? std::vector<Intervention>{} : others_than(late);
      if (!found && (alone || !search.others.empty())) found = find_critical_time(search, late);
    }
    if (!found) search.from = late.behind.front();
    keep_critical(search, found);
  }

  std::vector<Intervention> others_than(const LateThread& late) const {
    std::vector<Intervention> others;
    const Plan& plan = runs_.test().failing.plan;
    for (size_t i = 0; i < plan.interventions.size(); ++i)
      if (!std::ranges::count(late.interventions, i) && !has_holds(plan))
        others.push_back(plan.interventions[i]);
    return others;
  }

  std::optional<CriticalPoint> find_critical_time(CriticalSearch& search, const LateThread& late) {
    if (has_holds(runs_.test().failing.plan)) return std::nullopt;
    for (const size_t from : times_to_try(late)) {
      search.from = from;
      runs_.say(fmt::format(
          "{} comes to {} after it is late: looking for the last one that must not be late",
          late.name, counted_steps(search)));
      if (auto found = find_critical(runs_, search)) return found;
    }
    return std::nullopt;
  }

  void keep_critical(const CriticalSearch& search, std::optional<CriticalPoint> found) {
    if (found) {
      found->count = passes_until(passing(), found->step);
      runs_.say(fmt::format("critical: {}, the last step before which being late makes it fail",
                            short_name(found->step)));
      criticals_.push_back(*found);
      if (waits_there(found->step)) {
        found->when_reached = true;
        weaker_.push_back(*found);
      }
    }
    if (search.steps.size() <= search.from) return;
    CriticalPoint end;  // whatever the thread still does
    end.step = search.steps.back();
    end.late = search.late;
    end.whole_class = search.whole_class;
    end.count = passes_until(passing(), end.step);
    if (!found || found->next) (found ? weaker_ : criticals_).push_back(std::move(end));
  }

  bool waits_there(const ThreadStep& step) const {
    return may_wait(passing().sites[passing().calls[step.call].site]);
  }

  // ---- What has to wait ----

  void try_barriers(const std::vector<CriticalPoint>& criticals) {
    BarrierHints hints{{}, named_barriers_};
    for (const CriticalPoint& critical : criticals) hints.late.push_back(critical.step.thread.text);
    if (std::ranges::any_of(criticals, &CriticalPoint::whole_class)) hints.late = late_names();
    auto candidates = barrier_candidates(failing(), *lines_, hints);
    // A patch waits whenever the place is reached: what must not wait the first time comes last.
    std::ranges::stable_partition(candidates,
                                  [](const ThreadStep& step) { return step.visit == 1; });
    std::map<std::string, int> tried;
    for (size_t i = 0; i < candidates.size() && i < options_.most_barriers && !is_done(); ++i) {
      if (++tried[short_name(candidates[i])] > most_visits_tried) continue;
      std::vector<HandOverPoints> order;
      for (const CriticalPoint& critical : criticals)
        if (const ThreadStep* barrier = earlier(candidates, i, order.size()))
          order.push_back({critical, *barrier});
      if (order.size() != criticals.size() || try_order(order) || is_done()) continue;
      if (const auto more = counted_until(order)) try_order(*more);
    }
  }

  // Once may not be enough: then as often as in a passing run before the barrier, by whichever
  // thread of its class. Nothing: that is no more often.
  std::optional<std::vector<HandOverPoints>> counted_until(
      const std::vector<HandOverPoints>& order) const {
    std::vector<HandOverPoints> more = order;
    bool is_more = false;
    for (HandOverPoints& points : more) {
      CriticalPoint& critical = points.critical;
      const uint64_t passes = class_passes_until(critical.step, points.barrier);
      if (passes <= critical.step.visit) continue;
      critical.whole_class = is_more = true;
      critical.step.visit = critical.count = passes;
    }
    return is_more ? std::optional(more) : std::nullopt;
  }

  uint64_t class_passes_until(const ThreadStep& step, const ThreadStep& barrier) const {
    const auto others = steps_of(passing(), thread_named(passing(), barrier.thread.text), *lines_);
    const auto there = std::ranges::find_if(others, [&](const ThreadStep& other) {
      return other.site == barrier.site && other.visit == barrier.visit;
    });
    if (there == others.end()) return 0;
    const std::string name = thread_class_of(step.thread.text);
    return static_cast<uint64_t>(
        std::ranges::count_if(passing().calls, [&](const TracedCall& call) {
          return !call.is_intervention && call.enter < there->at &&
                 call.site < passing().sites.size() && call.thread < passing().threads.size() &&
                 passing().sites[call.site].name == step.site &&
                 thread_class_of(passing().threads[call.thread].name.text) == name;
        }));
  }

  // One place holds a thread for one reason: the next reason has the place before it.
  static const ThreadStep* earlier(const std::vector<ThreadStep>& candidates, size_t from,
                                   size_t by) {
    std::set<SiteName> sites;
    for (size_t i = from; i < candidates.size(); ++i) {
      if (candidates[i].thread.text != candidates[from].thread.text) continue;
      if (candidates[i].at > candidates[from].at || !sites.insert(candidates[i].site).second)
        continue;
      if (sites.size() == by + 1) return &candidates[i];
    }
    return nullptr;
  }

  int quick_tries() const { return is_inverted() ? noisy_quick_runs : quick_runs; }

  // Whether it is kept.
  bool try_order(const std::vector<HandOverPoints>& order) {
    Verification verify(runs_, limits_);
    runs_.runner().teller().announce(words_of(order));
    const std::string objection = verify.quick_objection(order, quick_tries());
    if (runs_.is_over()) return false;
    if (!objection.empty()) return drop(order, objection);
    if (const std::string why = objection_when_others_are_later(order); !why.empty())
      return drop(order, why);
    runs_.say("it passes: verifying that");
    const Verification::Verdict verdict = verify(order);
    if (!verdict.objection.empty()) return drop(order, verdict.objection);
    if (!verdict.is_complete) return false;
    keep(order, verdict.runs);
    return true;
  }

  // Of several late threads, one that is waited for may be the last one only by chance.
  std::string objection_when_others_are_later(const std::vector<HandOverPoints>& order) {
    if (late_.size() < 2 || has_holds(runs_.test().failing.plan)) return "";
    const Trial before = runs_.test().failing;
    std::string why;
    for (const LateThread& late : late_) {
      const bool is_waited_for = std::ranges::any_of(order, [&](const HandOverPoints& points) {
        return points.critical.step.thread.text == late.name;
      });
      if (is_waited_for || !why.empty()) continue;
      for (const size_t i : late.interventions)
        runs_.test().failing.plan.interventions[i].duration += 2 * lateness();
      why = Verification(runs_, limits_).quick_objection(order, quick_tries());
      if (!why.empty()) why += fmt::format(", with {} later than that", late.name);
      runs_.test().failing = before;
    }
    return why;
  }

  static std::string words_of(const std::vector<HandOverPoints>& order) {
    std::vector<std::string> parts;
    for (const HandOverPoints& one : order)
      parts.push_back(
          fmt::format("{} waits for {}", short_name(one.barrier), short_name(one.critical.step)));
    return join(parts, "; ");
  }

  std::vector<HandOver> hand_overs_of(const std::vector<HandOverPoints>& order) const {
    std::vector<HandOver> all;
    for (const HandOverPoints& one : order) all.push_back(hand_over_of(one, &*lines_));
    return all;
  }

  bool drop(const std::vector<HandOverPoints>& order, const std::string& why) {
    report_.dropped.push_back({hand_overs_of(order), why});
    return false;
  }

  void keep(const std::vector<HandOverPoints>& order, const EnforcedRuns& runs) {
    Plan plan = runs_.test().passing.plan;
    plan.interventions.clear();
    plan.agent = true;
    EnforcedRepair repair{hand_overs_of(order), with_order(plan, order, longest_bound), runs, true};
    report_.wait = guessed_wait(failing(), order.front().barrier, *lines_);
    if (tell_found_) tell_found_(repair);
    report_.repairs.push_back(std::move(repair));
  }

  // ---- When the failing run has nobody late: it fails by itself, or on a scarce machine ----

  // A later step of the other thread is a stronger condition: the last one first, then the earliest
  // that is enough.
  void hold_without_lateness() {
    runs_.say("nobody is late in the failing run: trying what others have done by then");
    const auto barriers = barrier_candidates(failing(), *lines_, {{}, named_barriers_});
    for (size_t i = 0; i < barriers.size() && i < options_.most_barriers; ++i)
      for (uint32_t thread = 0; thread < passing().threads.size(); ++thread) {
        if (is_done()) return;
        if (passing().threads[thread].name.text != barriers[i].thread.text)
          try_thread(thread, barriers[i]);
      }
  }

  CriticalPoint point_at(const std::vector<ThreadStep>& steps, size_t number) const {
    CriticalPoint point;
    point.step = steps[number];
    if (number + 1 < steps.size()) point.next = steps[number + 1];
    point.late.duration = least_lateness;
    point.count = passes_until(passing(), point.step);
    return point;
  }

  void try_thread(uint32_t thread, const ThreadStep& barrier) {
    const auto steps = steps_of(passing(), thread, *lines_);
    if (steps.empty()) return;
    Verification verify(runs_, limits_);
    const auto objection = [&](size_t number) {
      return verify.quick_objection({{point_at(steps, number), barrier}}, quick_tries());
    };
    const std::string why = objection(steps.size() - 1);
    if (runs_.is_over()) return;
    if (!why.empty()) return (void)drop({{point_at(steps, steps.size() - 1), barrier}}, why);
    size_t low = 0, enough = steps.size() - 1;
    while (low < enough && !runs_.is_over()) {
      const size_t middle = (low + enough) / 2;
      if (objection(middle).empty())
        enough = middle;
      else
        low = middle + 1;
    }
    if (runs_.is_over()) return;
    for (size_t number = enough; number < steps.size() && !is_done(); ++number)
      if (try_order({{point_at(steps, number), barrier}})) return;
  }

  // ---- When no order helps ----

  Duration lateness() const {
    Duration late = least_lateness;
    for (const LateThread& one : late_) late = std::max(late, one.by);
    return late;
  }

  void ask_for_timing() {
    report_.exact_timing = recognise_exact_timing(
        runs_, {passing(), failing(), *lines_, lateness(), options_.slack, options_.machine,
                [this](const Intervention& itself) { return repairs_other_side(itself); }});
  }

  // The same failure may come because either side is late: who waits must be waited for, too.
  bool repairs_other_side(const Intervention& itself) {
    if (is_other_side_ || passing().threads.size() < 2) return false;
    const Trial before = runs_.test().failing;
    runs_.test().failing = runs_.test().passing;
    runs_.test().failing.plan.interventions = {itself};
    runs_.test().failing.why = "the other side late";
    RepairSearch other(runs_, options_, tell_found_);
    other.is_other_side_ = true;
    RepairReport report = other();
    runs_.test().failing = before;
    if (report.repairs.empty()) return false;
    report_.repairs = std::move(report.repairs);
    report_.wait = report.wait;
    report_.notes.push_back(fmt::format(
        "this is for {} being late. The failure also comes when {} is {} late, which no order "
        "prevents",
        itself.thread.text, join(late_names(), " or "), format_duration(lateness())));
    return true;
  }

  // The dual of a hand-over: the reading side waits for a time, and hopes.
  void find_stop_gap() {
    const auto barriers = barrier_candidates(failing(), *lines_, {late_names(), named_barriers_});
    if (barriers.empty()) return;
    Intervention delay;
    delay.duration = 2 * lateness();
    Trial trial = runs_.test().failing;
    trial.plan.interventions.push_back(late_before(delay, barriers.front()));
    trial.why = "a delay before the reading side";
    for (int i = 0; i < runs_of_stop_gap; ++i)
      if (runs_.run(trial).end != End::passed) return;
    report_.stop_gap = fmt::format(
        "a delay of {} before {} let the test pass in {} of {} runs under what makes it fail: this "
        "is no repair, a slower machine fails again",
        format_duration(delay.duration), short_name(barriers.front()), runs_of_stop_gap,
        runs_of_stop_gap);
  }

  std::vector<std::string> late_names() const {
    std::vector<std::string> names;
    for (const LateThread& late : late_) names.push_back(late.name);
    return names;
  }

  RepairReport finished() {
    report_.runs = runs_.runner().runs();
    report_.elapsed = runs_.runner().elapsed();
    report_.interrupted = runs_.runner().stopped();
    report_.out_of_budget = !report_.interrupted && runs_.runner().left() <= Duration{};
    report_.failing_plan = to_string(runs_.test().failing.plan, runs_.test().failing.conditions);
    return std::move(report_);
  }

  RepairRuns& runs_;
  const RepairOptions& options_;
  VerificationLimits limits_;
  const std::function<void(const EnforcedRepair&)>& tell_found_;
  bool is_other_side_ = false;
  RepairReport report_;
  std::optional<RepairLines> lines_;
  std::optional<ExperimentResult> failing_, passing_;
  std::vector<SiteName> named_barriers_;
  std::vector<LateThread> late_;
  std::vector<CriticalPoint> criticals_;
  std::vector<CriticalPoint> weaker_;  // tried when these do not help
};

}  // namespace

std::string lock_cycle(const Trace& trace) {
  const auto& stuck = deadlock_of(trace);
  for (const DeadlockedThread& start : stuck) {
    std::set<ThreadNumber> met;
    for (auto at = std::ranges::find(stuck, start.thread, &DeadlockedThread::thread);
         at != stuck.end() && at->held_by;
         at = std::ranges::find(stuck, *at->held_by, &DeadlockedThread::thread))
      if (!met.insert(at->thread).second) return deadlock_text(trace);
  }
  return "";
}

RepairReport find_repair(RepairRuns& runs, const RepairOptions& options,
                         const std::function<void(const EnforcedRepair&)>& found) {
  return RepairSearch(runs, options, found)();
}

}  // namespace unflake
