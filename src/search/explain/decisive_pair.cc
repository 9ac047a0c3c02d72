#include "search/explain/decisive_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "trace/happens_before.h"
#include "trace/names.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using End = RepairRuns::End;

constexpr Duration longest_bound = 3s;
constexpr size_t most_threads = 4;  // in which a barrier is looked for

class PairExperiments {
 public:
  PairExperiments(RepairRuns& runs, const DecisivePairOptions& options)
      : runs_(runs), options_(options) {}

  DecisivePair operator()() {
    const bool controlled = runs_.go_under_control();
    look();
    if (controlled && !found_.critical && !runs_.is_over()) {
      runs_.leave_control();
      found_ = {};
      look();
    }
    found_.runs = runs_.runner().runs();
    return std::move(found_);
  }

 private:
  void look() {
    if (!record_runs()) return;
    found_.other_way = other_way();
    search();
  }

  bool record_runs() {
    auto failing = runs_.record(runs_.test().failing, nullptr, End::failed);
    if (!failing) return give_up("the test did not fail as recorded with its calls recorded");
    const Trial usual = with_places_watched(runs_.test().passing);
    auto passing = runs_.record(usual, nullptr, End::passed);
    if (!passing) return give_up("the test did not pass with its calls recorded");
    lines_.emplace(std::vector<const Trace*>{failing->trace.get(), passing->trace.get()},
                   runs_.test().lines);
    found_.failing = runs_.record(runs_.test().failing, &*lines_, End::failed);
    found_.passing = runs_.record(usual, &*lines_, End::passed);
    if (found_.failing && found_.passing) return true;
    lines_.emplace(std::vector<const Trace*>{}, runs_.test().lines);
    found_.failing = std::move(failing);
    found_.passing = std::move(passing);
    return true;
  }

  // A line or an instruction at which the plan is late is a step where somebody watches it.
  Trial with_places_watched(Trial trial) const {
    std::set<SiteName> known;
    for (Intervention one : runs_.test().failing.plan.interventions) {
      if (!one.site.api.empty() || !known.insert(one.site).second) continue;
      one.action = Intervention::Action::watch;
      one.position = Intervention::Position::before;
      one.threads = Intervention::Threads::any;
      one.visits = Intervention::Visits::every;
      one.until.reset();
      one.anchor.reset();
      trial.plan.interventions.push_back(std::move(one));
    }
    return trial;
  }

  // What there was no time for has shown nothing.
  void note(std::string what) {
    found_.tried.push_back(runs_.is_over() ? "no time was left for more experiments"
                                           : std::move(what));
  }

  std::optional<CodeSpot> other_way() const {
    const TracedFailure* failure = main_failure(failing());
    if (failure == nullptr || failure->thread >= failing().threads.size()) return std::nullopt;
    const uint32_t thread = thread_like(passing(), failing().threads[failure->thread].name.text);
    if (thread == no_index) return std::nullopt;
    std::set<SiteName> usual;
    for (const ThreadStep& step : steps_of(passing(), thread, *lines_)) usual.insert(step.site);
    for (const ThreadStep& step : steps_of(failing(), failure->thread, *lines_))
      if (step.is_line() && step.at <= failure->at && !usual.contains(step.site)) return step.spot;
    return std::nullopt;
  }

  bool give_up(std::string why) {
    note(std::move(why));
    return false;
  }

  const Trace& failing() const { return *found_.failing->trace; }
  const Trace& passing() const { return *found_.passing->trace; }

  void search() {
    late_ = late_threads(runs_.test().failing.plan, failing());
    if (late_.empty()) return (void)give_up("nobody is late in the failing run");
    for (const LateThread& late : late_) {
      find_critical_of(late);
      if (found_.critical) break;
    }
    if (!found_.critical) return;
    find_barrier();
    if (!found_.barrier && be_late_there()) find_barrier();
    if (found_.barrier) {
      count_both_ways();
      name_hand_over();
    } else if (!find_own_way()) {
      note("no place was found whose waiting for it makes the test pass");
    }
  }

  // In a loop the plan may be late at a visit before the last one that matters.
  bool be_late_there() {
    Trial there = runs_.test().failing;
    there.plan.interventions = other_delays_;
    there.plan.interventions.push_back(found_.critical->late);
    if (runs_.is_over()) return false;
    auto failing = runs_.record(there, &*lines_, End::failed);
    if (!failing) return false;
    found_.late_there = there.plan;
    found_.failing = std::move(failing);
    runs_.test().failing = std::move(there);
    return true;
  }

  void find_critical_of(LateThread late) {
    const Plan& plan = runs_.test().failing.plan;
    CriticalSearch search = search_for(plan, passing(), *lines_, late);
    if (search.steps.empty()) return;
    for (size_t i = 0; i < plan.interventions.size(); ++i)
      if (!std::ranges::count(late.interventions, i))
        search.others.push_back(plan.interventions[i]);
    other_delays_ = search.others;
    const std::vector<ThreadStep> steps = search.steps;
    std::vector<size_t> times(late.behind.rbegin(), late.behind.rend());
    times.erase(std::ranges::unique(times).begin(), times.end());
    for (size_t i = 0; i < times.size() && i < 2 && !found_.critical; ++i)
      find_critical_from(times[i], steps, search);
    if (found_.critical)
      found_.tried.push_back(fmt::format("{} late before {} fails, late after it passes", late.name,
                                         short_name(found_.critical->step)));
    else
      note(fmt::format("no step of {} was found from which on it may be late", late.name));
  }

  // Who is late with a lock keeps others waiting for it, so that nothing goes wrong: between such
  // steps, the last one that fails cannot be found by halving.
  void find_critical_from(size_t from, const std::vector<ThreadStep>& steps,
                          CriticalSearch search) {
    search.steps = steps_without_lock(passing(), steps);
    std::erase_if(search.steps, [&](const ThreadStep& step) {
      return step.woken_from && step.woken_from->site != search.late.site;
    });
    const auto first = std::ranges::find_if(
        search.steps, [&](const ThreadStep& step) { return number_of(step, steps) >= from; });
    // A plan that is late with a lock wants others to wait for it.
    if (first != search.steps.end() && number_of(*first, steps) == from) {
      search.from = static_cast<size_t>(first - search.steps.begin());
      found_.critical = find_critical(runs_, search);
    }
    search.steps = steps;
    search.from = from;
    if (!found_.critical) return (void)(found_.critical = find_critical(runs_, search));
    narrow_critical(steps, search);
    // Once a thread has a lock, whoever needs it comes later by itself.
    const size_t next = number_of(found_.critical->step, steps) + 1;
    if (next < steps.size()) found_.critical->next = steps[next];
  }

  // Where others do not need the lock, lateness shows how far it matters.
  void narrow_critical(const std::vector<ThreadStep>& steps, CriticalSearch& search) {
    const CriticalPoint& found = *found_.critical;
    search.from = number_of(found.step, steps) + 1;
    const size_t end = found.next ? number_of(*found.next, steps) : steps.size();
    if (search.from >= end) return;
    search.steps.resize(end);
    auto narrower = find_critical(runs_, search);
    if (!narrower) return;
    if (!narrower->next) narrower->next = found.next;
    found_.critical = std::move(narrower);
  }

  static size_t number_of(const ThreadStep& step, const std::vector<ThreadStep>& steps) {
    return static_cast<size_t>(std::ranges::find(steps, step.call, &ThreadStep::call) -
                               steps.begin());
  }

  // ---- The barrier point ----

  bool is_late(const std::string& name) const {
    return std::ranges::any_of(late_, [&](const LateThread& late) { return late.name == name; });
  }

  Duration late_from() const {
    Duration from = Duration::max();
    for (const TracedCall& call : failing().calls)
      if (call.is_intervention) from = std::min(from, call.enter);
    return from;
  }

  // The thread that fails first, then those that do something near the failure.
  std::vector<uint32_t> threads_to_hold() const {
    const TracedFailure* failure = main_failure(failing());
    const Duration end = failure ? failure->at : Duration::max();
    std::vector<std::pair<Duration, uint32_t>> order;
    for (uint32_t i = 0; i < failing().threads.size(); ++i) {
      if (is_late(failing().threads[i].name.text)) continue;
      Duration last{};
      for (const TracedCall& call : failing().calls)
        if (call.thread == i && call.enter <= end) last = std::max(last, call.enter);
      if (failure ? failure->thread == i : i == 0) last = Duration::max();
      order.push_back({last, i});
    }
    std::ranges::stable_sort(order, std::greater(), &std::pair<Duration, uint32_t>::first);
    if (order.size() > most_threads) order.resize(most_threads);
    std::vector<uint32_t> threads;
    for (const auto& [last, thread] : order) threads.push_back(thread);
    return threads;
  }

  void find_barrier() {
    set_bound();
    for (const uint32_t thread : threads_to_hold()) {
      if (runs_.is_over()) break;
      if (find_barrier_in(thread)) return;
    }
  }

  void set_bound() {
    bound_ = std::clamp(2 * (found_.critical->late.duration + found_.passing->outcome.duration),
                        options_.shortest_bound, longest_bound);
  }

  enum class Waiting { helps, is_too_late, is_impossible, did_not_begin };

  // Visits are counted as whoever is held counts them.
  bool is_same_pool(uint32_t thread) const {
    return found_.critical->whole_class && thread_class_of(found_.critical->step.thread.text) ==
                                               thread_class_of(failing().threads[thread].name.text);
  }

  // The later a thread waits the less it helps: from a place on it is too late. What is so early
  // that the other one could not come first is of no use either.
  bool find_barrier_in(uint32_t thread) {
    const TracedFailure* failure = main_failure(failing());
    const Duration from = late_from(), to = failure ? failure->at : Duration::max();
    const std::vector<ThreadStep> all = steps_of(failing(), thread, *lines_, is_same_pool(thread));
    std::vector<ThreadStep> steps = steps_without_lock(failing(), all);
    std::erase_if(steps, [&](const ThreadStep& step) {
      return step.at < from || step.at > to || step.woken_from;
    });
    const std::optional<ThreadStep> last = last_that_helps(steps);
    if (!last) return false;
    found_.barrier = last;
    const auto here = std::ranges::find(all, last->call, &ThreadStep::call);
    if (here + 1 != all.end()) behind_barrier_ = *(here + 1);
    return true;
  }

  // Where the two cannot come in this order, one of them is too early or too late: later steps are
  // looked at first.
  std::optional<ThreadStep> last_that_helps(std::span<const ThreadStep> steps) {
    std::optional<ThreadStep> best;
    while (!steps.empty() && !runs_.is_over()) {
      const size_t middle = steps.size() / 2;
      const auto later = steps.subspan(middle + 1), earlier = steps.first(middle);
      const Waiting waiting = wait_at(steps[middle]);
      if (waiting == Waiting::helps) best = steps[middle];
      if (waiting == Waiting::is_impossible || waiting == Waiting::did_not_begin)
        if (auto found = last_that_helps(later)) return found;
      steps = waiting == Waiting::helps ? later : earlier;
    }
    return best;
  }

  Plan with_wait(const Plan& plan, const ThreadStep& barrier) const {
    return with_order(plan, {{*found_.critical, barrier}}, bound_);
  }

  Waiting wait_at(const ThreadStep& barrier) {
    Trial trial = late_trial();
    const size_t own = trial.plan.interventions.size();
    trial.plan = with_wait(trial.plan, barrier);
    trial.why = short_name(barrier) + " waits for it";
    const RepairRuns::Run run = runs_.run(trial);
    if (run.end == End::passed) return Waiting::helps;
    const HoldsSeen held = holds_in(trial.plan, own, run.result);
    if (held.fired == 0) return Waiting::did_not_begin;
    return held.impossible + held.let_go > 0 ? Waiting::is_impossible : Waiting::is_too_late;
  }

  Trial late_trial() const {
    Trial trial = runs_.test().failing;
    return trial;
  }

  // ---- One thread alone ----

  // A thread that nobody overtakes but its own time: it comes to something else than when it is in
  // time. The new lines that it comes to in either run tell what.
  bool find_own_way() {
    const TracedFailure* failure = main_failure(failing());
    const uint32_t thread = failure ? failure->thread : 0;
    if (thread >= failing().threads.size() || !is_late(failing().threads[thread].name.text))
      return false;
    const auto usual = steps_of(passing(), found_step_thread(), *lines_);
    auto other = steps_of(failing(), thread, *lines_);
    const Duration end = failure ? failure->at : Duration::max();
    std::erase_if(other, [&](const ThreadStep& step) { return step.at > end; });
    const auto first = first_new(usual, other, found_.critical->step.at);
    const auto second = first_new(other, usual, late_from());
    if (!first || !second) return false;
    found_.own_way = {first->call, second->call};
    found_.tried.push_back(
        fmt::format("the same thread comes to {} when it is in time, and to {} "
                    "when it is late",
                    short_name(*first), short_name(*second)));
    return true;
  }

  uint32_t found_step_thread() const { return passing().calls[found_.critical->step.call].thread; }

  static std::optional<ThreadStep> first_new(const std::vector<ThreadStep>& steps,
                                             const std::vector<ThreadStep>& others, Duration from) {
    std::set<SiteName> known;
    for (const ThreadStep& step : others) known.insert(step.site);
    for (const ThreadStep& step : steps)
      if (step.is_line() && step.at >= from && !known.contains(step.site)) return step;
    return std::nullopt;
  }

  // ---- Under a lock ----

  // Where both take a lock for it, what one of them waits for there and the other one signals is
  // what it is about.
  void name_hand_over() {
    const auto own = section_of(passing(), found_.critical->step);
    const auto others = section_of(failing(), *found_.barrier);
    for (const size_t one : own)
      for (const size_t other : others)
        if (is_hand_over(passing().calls[one], failing().calls[other]))
          return (void)(found_.hand_over = {one, other});
  }

  // The calls from where a thread takes a lock until it gives it back.
  static std::vector<size_t> section_of(const Trace& trace, const ThreadStep& lock) {
    std::vector<size_t> calls;
    const TracedCall& taken = trace.calls[lock.call];
    if (!is_lock(trace.sites[taken.site])) return calls;
    for (size_t i = lock.call + 1; i < trace.calls.size(); ++i) {
      const TracedCall& call = trace.calls[i];
      if (call.thread != taken.thread || call.is_intervention) continue;
      if (is_unlock(trace.sites[call.site]) && call.object == taken.object) break;
      calls.push_back(i);
    }
    return calls;
  }

  // Addresses differ from run to run: what the other one signals is looked up in the passing one.
  bool is_hand_over(const TracedCall& one, const TracedCall& other) const {
    const TracedSite &own = passing().sites[one.site], &its = failing().sites[other.site];
    if (own.group != its.group || is_lock(own)) return false;
    if (!(waits_for_signal(own) && can_wake(its)) && !(can_wake(own) && waits_for_signal(its)))
      return false;
    return std::ranges::any_of(passing().calls, [&](const TracedCall& call) {
      return call.object == one.object && passing().sites[call.site].name == its.name;
    });
  }

  // ---- Both directions ----

  void count_both_ways() {
    Trial kept = late_trial();
    kept.plan = with_wait(kept.plan, *found_.barrier);
    kept.why = "the critical point first";
    Trial reversed = runs_.test().passing;
    reversed.plan.agent = true;
    reversed.plan = reversed_order(reversed.plan);
    reversed.why = "the barrier point first";
    for (int i = 0; i < options_.runs_each_way && !runs_.is_over(); ++i) {
      count(kept, End::passed, found_.kept);
      count(reversed, End::failed, found_.reversed);
    }
    if (found_.kept.hits > 0 && found_.reversed.hits > 0) return;
    tell("the critical point first", "passed, although a thread was late", found_.kept);
    tell("the barrier point first", "failed, although nobody was late", found_.reversed);
    if (runs_.is_over()) note("");
  }

  void tell(std::string_view order, std::string_view end, const Count& count) {
    if (count.runs == 0) return;
    found_.tried.push_back(
        fmt::format("with {}, {} of {} runs {}", order, count.hits, count.runs, end));
  }

  void count(const Trial& trial, End wanted, Count& count) {
    const RepairRuns::Run run = runs_.run(trial, RepairRuns::Purpose::confirm);
    if (!run.ended() || run.end == End::refused) return;
    ++count.runs;
    count.hits += run.end == wanted;
  }

  // The critical point waits until the barrier point is over. A line is that when its thread has
  // come to the next step. Where several threads have to be late, all of them wait.
  Plan reversed_order(const Plan& plan) const {
    CriticalPoint first;
    first.step = *found_.barrier;
    first.next = behind_barrier_;
    Plan reversed = with_order(plan, {{first, found_.critical->step}}, bound_);
    Intervention hold = found_.critical->late;
    hold.action = Intervention::Action::hold;
    hold.until = reversed.interventions.back().until;
    hold.duration = bound_;
    reversed.interventions.back() = hold;
    for (const Intervention& other : other_delays_) {
      if (other.action != Intervention::Action::delay) continue;
      Intervention also = other;
      also.action = Intervention::Action::hold;
      also.until = hold.until;
      also.duration = bound_;
      reversed.interventions.push_back(std::move(also));
    }
    return reversed;
  }

  RepairRuns& runs_;
  const DecisivePairOptions options_;
  std::optional<RepairLines> lines_;
  std::vector<LateThread> late_;
  Duration bound_{};
  std::vector<Intervention> other_delays_;    // besides the one at the critical point
  std::optional<ThreadStep> behind_barrier_;  // none: its thread came no further
  DecisivePair found_;
};

}  // namespace

DecisivePair find_decisive_pair(RepairRuns& runs, const DecisivePairOptions& options) {
  return PairExperiments(runs, options)();
}

}  // namespace unflake
