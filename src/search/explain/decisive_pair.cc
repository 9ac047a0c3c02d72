#include "search/explain/decisive_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "trace/happens_before.h"
#include "trace/names.h"
#include "trace/roles.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using End = RepairRuns::End;

constexpr Duration longest_bound = 3s;
constexpr int most_looks = 3;       // for lateness in a failing run
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
    late_ = threads_to_blame();
    // A process that is killed while it is late may not have told so.
    for (int i = 0; i < most_looks && late_.empty() && !runs_.is_over(); ++i) {
      auto failing = runs_.record(runs_.test().failing, &*lines_, End::failed);
      if (failing) found_.failing = std::move(failing);
      late_ = threads_to_blame();
    }
    if (late_.empty()) return (void)give_up("nobody is late in the failing run");
    for (const LateThread& late : late_)
      if (find_pair_of(late)) return;
    if (find_other_late_thread()) return;
    // Where little lateness fails only mostly, twice as much may do so every time.
    if (!best_)
      for (LateThread late : late_) {
        late.by *= 2;
        if (find_pair_of(late)) return;
      }
    if (!best_) return;
    go_back_to(*best_);
    if (found_.barrier) return tell_both_ways();
    if (!find_own_way() && !find_gap())
      note("no place was found whose waiting for it makes the test pass");
  }

  // Lateness that is there when the test passes, too, is no reason.
  std::vector<LateThread> threads_to_blame() const {
    const auto& usual = runs_.test().passing.plan.interventions;
    const auto& all = runs_.test().failing.plan.interventions;
    std::vector<LateThread> late = late_threads(runs_.test().failing.plan, failing());
    std::erase_if(late, [&](const LateThread& one) {
      return std::ranges::all_of(one.interventions, [&](size_t i) {
        return std::ranges::any_of(
            usual, [&](const Intervention& other) { return is_same_lateness(other, all[i]); });
      });
    });
    return late;
  }

  static bool is_same_lateness(const Intervention& one, const Intervention& other) {
    return one.action == other.action && one.site == other.site && one.thread == other.thread &&
           one.position == other.position;
  }

  // Several threads may have to be late, and each of them comes too late for something else.
  bool find_pair_of(const LateThread& late) {
    if (runs_.is_over()) return false;
    const State before = state();
    late_name_ = late.name;
    late_namesake_ = late.namesake;
    found_.critical.reset();
    found_.barrier.reset();
    late_without_lock_.reset();
    find_critical_of(late);
    if (!found_.critical) return false;
    // Which visit by a pool it is differs with what else its threads do, and a test that fails by
    // itself now and then may do so before anybody is late there.
    const bool at_once = !found_.critical->whole_class && !runs_.test().is_noisy();
    if (at_once) be_late_there();
    find_barrier();
    if (!at_once && !is_decided() && be_late_there()) find_barrier();
    if (is_decided()) {
      name_hand_over();
      return true;
    }
    if (!best_) best_ = state();
    go_back_to(before);
    return false;
  }

  // What a search that begins anew would change.
  struct State {
    Trial failing_trial;
    std::optional<ExperimentResult> failing;
    std::optional<CriticalPoint> critical;
    std::optional<ThreadStep> barrier, behind_barrier;
    Count kept, reversed;
    std::optional<Plan> late_there;
    std::vector<Intervention> other_delays;
    std::vector<ThreadStep> late_steps;
    std::string late_name;
    size_t late_namesake = 0;
    std::optional<Intervention> late_without_lock;
  };

  State state() const {
    return {runs_.test().failing, found_.failing, found_.critical, found_.barrier,
            behind_barrier_,      found_.kept,    found_.reversed, found_.late_there,
            other_delays_,        late_steps_,    late_name_,      late_namesake_,
            late_without_lock_};
  }

  void go_back_to(const State& state) {
    runs_.test().failing = state.failing_trial;
    found_.failing = state.failing;
    found_.critical = state.critical;
    found_.barrier = state.barrier;
    behind_barrier_ = state.behind_barrier;
    found_.kept = state.kept;
    found_.reversed = state.reversed;
    found_.late_there = state.late_there;
    other_delays_ = state.other_delays;
    late_steps_ = state.late_steps;
    late_name_ = state.late_name;
    late_namesake_ = state.late_namesake;
    late_without_lock_ = state.late_without_lock;
  }

  // Whoever comes late may leave another thread, which it has set going, less time: that one is
  // overtaken, and being late itself it shows by what.
  bool find_other_late_thread() {
    const std::optional<CriticalPoint> from = best_ ? best_->critical : start_;
    if (!from) return false;
    const State before = best_ ? *best_ : state();
    for (const ThreadStep& first : others_that_follow(from->step)) {
      if (runs_.is_over()) return false;
      go_back_to(before);
      Trial trial = runs_.test().passing;
      trial.plan.agent = true;
      trial.plan.interventions = before.other_delays;
      trial.plan.interventions.push_back(late_before(from->late, first));
      Intervention& late = trial.plan.interventions.back();
      late.threads = Intervention::Threads::named;
      late.thread = first.thread;
      trial.why = first.thread.text + " late instead";
      if (!fails_twice(trial)) continue;
      auto failing = runs_.record(trial, &*lines_, End::failed);
      if (!failing) continue;
      found_.failing = std::move(failing);
      found_.late_there = trial.plan;
      runs_.test().failing = std::move(trial);
      found_.tried.push_back(fmt::format("the same failure comes when {} is late instead, by {}",
                                         who_is(passing(), passing().calls[first.call].thread),
                                         format_duration(late.duration)));
      for (const LateThread& other : threads_to_blame())
        if (other.name == first.thread.text && find_pair_of(other)) return true;
    }
    go_back_to(before);
    return false;
  }

  bool fails_twice(const Trial& trial) {
    return runs_.most_of(trial) == End::failed && runs_.most_of(trial) == End::failed;
  }

  // The first steps after it of threads that then have something to do.
  std::vector<ThreadStep> others_that_follow(const ThreadStep& critical) const {
    std::vector<ThreadStep> firsts;
    for (uint32_t thread = 0; thread < passing().threads.size(); ++thread) {
      const std::string& name = passing().threads[thread].name.text;
      if (name == "main") continue;
      const auto steps = steps_without_lock(passing(), steps_of(passing(), thread, *lines_));
      const auto first = std::ranges::find_if(steps, [&](const ThreadStep& step) {
        return step.at >= critical.at && !step.woken_from;
      });
      if (first != steps.end() && first->thread != critical.thread) firsts.push_back(*first);
    }
    std::ranges::stable_sort(firsts, {}, &ThreadStep::at);
    if (firsts.size() > most_threads) firsts.resize(most_threads);
    return firsts;
  }

  bool is_decided() const { return found_.kept.hits > 0 && found_.reversed.hits > 0; }

  // In a loop the plan may be late at a visit before the last one that matters, and what follows
  // comes at other times then.
  bool be_late_there() {
    Trial there = runs_.test().failing;
    there.plan.interventions = other_delays_;
    there.plan.interventions.push_back(found_.critical->late);
    const bool is_there =
        std::ranges::any_of(runs_.test().failing.plan.interventions, [&](const Intervention& one) {
          return is_same_lateness(one, found_.critical->late) &&
                 one.visits == found_.critical->late.visits && one.nth == found_.critical->late.nth;
        });
    if (is_there || runs_.is_over()) return false;
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
    if (search.whole_class) keep_first_visits(search.steps, late);
    const std::vector<ThreadStep> steps = search.steps;
    late_steps_ = steps;
    std::vector<size_t> times(late.behind.rbegin(), late.behind.rend());
    times.erase(std::ranges::unique(times).begin(), times.end());
    if (!start_ && !times.empty() && times.front() < steps.size())
      start_ = start_at(steps[times.front()], search);
    for (size_t i = 0; i < times.size() && i < 2 && !found_.critical; ++i)
      find_critical_from(times[i], steps, search);
    // Whoever could wait for the end of a wait may be the one that ends it.
    if (found_.critical && waits_for_signal(site_of(found_.critical->step)))
      found_.critical->when_reached = true;
    if (found_.critical)
      found_.tried.push_back(
          fmt::format("with {} late before {} it fails, and late after that it passes", late_one(),
                      step_words(passing(), found_.critical->step)));
    else
      note(fmt::format("no step of {} was found from which on it may be late", late_one()));
  }

  const TracedSite& site_of(const ThreadStep& step) const {
    return passing().sites[passing().calls[step.call].site];
  }

  CriticalPoint start_at(const ThreadStep& step, const CriticalSearch& search) const {
    CriticalPoint start;
    start.step = step;
    start.late = late_before(search.late, step);
    return start;
  }

  // Which of its threads comes somewhere for the tenth time is chance, most of all in what they all
  // do between two tasks.
  static void keep_first_visits(std::vector<ThreadStep>& steps, LateThread& late) {
    std::vector<ThreadStep> kept;
    std::vector<size_t> behind;
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool is_late_there = std::ranges::count(late.behind, i) > 0;
      if (is_late_there) behind.push_back(kept.size());
      if (is_late_there || steps[i].visit == 1) kept.push_back(steps[i]);
    }
    steps = std::move(kept);
    late.behind = std::move(behind);
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
    late_without_lock_ = found.late;
    found_.critical = std::move(narrower);
  }

  static size_t number_of(const ThreadStep& step, const std::vector<ThreadStep>& steps) {
    return static_cast<size_t>(std::ranges::find(steps, step.call, &ThreadStep::call) -
                               steps.begin());
  }

  // ---- The barrier point ----

  // Another late one may be made to wait for this one.
  bool is_late(uint32_t thread) const {
    return failing().threads[thread].name.text == late_name_ &&
           namesake_number(failing(), thread) == late_namesake_;
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
      if (is_late(i)) continue;
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

  // A place where waiting helps is the one that matters if the test also fails when it comes first.
  void find_barrier() {
    set_bound();
    std::optional<Barrier> other;
    for (const uint32_t thread : threads_to_hold()) {
      if (runs_.is_over()) break;
      auto found = find_barrier_in(thread);
      if (!found) continue;
      take(*found);
      count_both_ways();
      if (is_decided()) return;
      found->kept = found_.kept;
      found->reversed = found_.reversed;
      if (!other && found->kept.hits > 0) other = std::move(found);
    }
    if (other) return take(*other);
    found_.barrier.reset();
    found_.kept = found_.reversed = {};
  }

  struct Barrier {
    ThreadStep step;
    std::optional<ThreadStep> next;  // none: its thread came no further
    Count kept{}, reversed{};
  };

  void take(const Barrier& barrier) {
    found_.barrier = barrier.step;
    behind_barrier_ = barrier.next;
    found_.kept = barrier.kept;
    found_.reversed = barrier.reversed;
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
  std::optional<Barrier> find_barrier_in(uint32_t thread) {
    const TracedFailure* failure = main_failure(failing());
    const Duration to = failure ? failure->at : Duration::max();
    const Duration from = late_from() < to ? late_from() : Duration{};
    const std::vector<ThreadStep> all = steps_of(failing(), thread, *lines_, is_same_pool(thread));
    std::vector<ThreadStep> steps = steps_without_lock(failing(), all);
    std::erase_if(steps, [&](const ThreadStep& step) {
      return step.at < from || step.at > to || step.woken_from;
    });
    const std::optional<ThreadStep> last = last_that_helps(steps);
    if (!last) return std::nullopt;
    Barrier barrier{*last, std::nullopt};
    const auto here = std::ranges::find(all, last->call, &ThreadStep::call);
    if (here + 1 != all.end()) barrier.next = *(here + 1);
    return barrier;
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
    Plan order = with_order(plan, {{*found_.critical, barrier}}, bound_);
    if (found_.critical->whole_class) order.interventions.back().count = passes_before(barrier);
    return order;
  }

  // Which thread of a pool is the late one differs from run to run: all that come there the same
  // way, before the barrier when the test passes, are waited for.
  uint64_t passes_before(const ThreadStep& barrier) const {
    const ThreadStep& critical = found_.critical->step;
    const std::string pool = thread_class_of(critical.thread.text);
    const auto way = lines_to(passing().calls[critical.call]);
    const Duration end = step_like(passing(), barrier).value_or(Duration{});
    uint64_t passes = 0;
    for (const TracedCall& call : passing().calls)
      passes += !call.is_intervention && call.enter >= critical.at && call.enter < end &&
                passing().sites[call.site].name == critical.site &&
                thread_class_of(passing().threads[call.thread].name.text) == pool &&
                lines_to(call) == way;
    return std::max<uint64_t>(1, passes);
  }

  std::vector<std::pair<std::string, int>> lines_to(const TracedCall& call) const {
    std::vector<std::pair<std::string, int>> lines;
    if (call.stack >= passing().stacks.size()) return lines;
    for (const TracedFrame& frame : passing().stacks[call.stack].frames)
      for (const Frame& source : frame.source)
        if (is_own(frame, source)) lines.emplace_back(source.file, source.line);
    return lines;
  }

  // When the same thread comes there in another run.
  std::optional<Duration> step_like(const Trace& trace, const ThreadStep& step) const {
    const uint32_t thread = thread_like(trace, step.thread.text);
    if (thread == no_index) return std::nullopt;
    for (const ThreadStep& one : steps_of(trace, thread, *lines_))
      if (one.site == step.site && one.visit == step.visit) return one.at;
    return std::nullopt;
  }

  Waiting wait_at(const ThreadStep& barrier) {
    Trial trial = late_trial();
    const size_t own = trial.plan.interventions.size();
    trial.plan = with_wait(trial.plan, barrier);
    trial.why = short_name(barrier) + " waits for it";
    const RepairRuns::Run run = runs_.run(trial);
    const HoldsSeen held = holds_in(trial.plan, own, run.result);
    const bool is_kept = held.impossible + held.let_go == 0;
    // Whoever was let go has only been late itself.
    if (run.end == End::passed && is_kept) return Waiting::helps;
    if (held.fired == 0) return Waiting::did_not_begin;
    return is_kept ? Waiting::is_too_late : Waiting::is_impossible;
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
    if (thread >= failing().threads.size() || !is_late(thread)) return false;
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
                    step_words(passing(), *first), step_words(failing(), *second)));
    return true;
  }

  // What people call it.
  std::string late_one() const {
    return who_is(passing(), thread_like(passing(), late_name_, late_namesake_));
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

  // ---- What must not be seen half done ----

  // The late thread may be late before a place, and after the critical point, but not in between:
  // what it does there and there belongs together.
  bool find_gap() {
    const auto at = std::ranges::find(late_steps_, found_.critical->step.call, &ThreadStep::call);
    if (at == late_steps_.end()) return false;
    size_t passes = 0, fails = static_cast<size_t>(at - late_steps_.begin());
    if (fails == 0 || !passes_when_late_at(late_steps_[passes])) return false;
    while (fails - passes > 1 && !runs_.is_over()) {
      const size_t middle = passes + (fails - passes) / 2;
      (passes_when_late_at(late_steps_[middle]) ? passes : fails) = middle;
    }
    const ThreadStep& begin = late_steps_[passes];
    if (runs_.is_over() || begin.process != found_.critical->step.process) return false;
    found_.gap_from = begin;
    found_.tried.push_back(
        fmt::format("with {} late before {} it passes, and late after that it fails", late_one(),
                    step_words(passing(), begin)));
    return true;
  }

  bool passes_when_late_at(const ThreadStep& step) {
    Trial trial = runs_.test().failing;
    trial.plan.interventions = other_delays_;
    trial.plan.interventions.push_back(late_before(found_.critical->late, step));
    trial.why = "late at " + short_name(step);
    return runs_.most_of(trial) == End::passed;
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

  static bool has_taken_lock(const Trace& trace, const TracedCall& call) {
    const TracedSite& site = trace.sites[call.site];
    return is_lock(site) && !is_unlock(site) && call.result == 0 && !call.unfinished;
  }

  // The calls from where a thread takes a lock until it gives it back.
  static std::vector<size_t> section_of(const Trace& trace, const ThreadStep& lock) {
    std::vector<size_t> calls;
    const TracedCall& taken = trace.calls[lock.call];
    if (!has_taken_lock(trace, taken)) return calls;
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
    const Trial reversed = reversed_trial(found_.critical->late);
    for (int i = 0; i < options_.runs_each_way && !runs_.is_over(); ++i) {
      count(kept, End::passed, found_.kept);
      if (found_.kept.hits == 0) return;
      count(reversed, End::failed, found_.reversed);
    }
    // Whoever has to come first may need the lock that the other one would wait with.
    if (found_.reversed.hits > 0 || !late_without_lock_) return;
    const Trial without_lock = reversed_trial(*late_without_lock_);
    Count again;
    for (int i = 0; i < options_.runs_each_way && !runs_.is_over(); ++i)
      count(without_lock, End::failed, again);
    if (again.hits > 0) found_.reversed = again;
  }

  Trial reversed_trial(const Intervention& late) const {
    Trial reversed = runs_.test().passing;
    reversed.plan.agent = true;
    reversed.plan = reversed_order(reversed.plan, late);
    reversed.why = "the barrier point first";
    return reversed;
  }

  void tell_both_ways() {
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
  Plan reversed_order(const Plan& plan, const Intervention& late) const {
    CriticalPoint first;
    first.step = *found_.barrier;
    first.next = behind_barrier_;
    Plan reversed = with_order(plan, {{first, found_.critical->step}}, bound_);
    Intervention hold = late;
    hold.action = Intervention::Action::hold;
    hold.until = reversed.interventions.back().until;
    hold.duration = bound_;
    reversed.interventions.back() = hold;
    for (const Intervention& other : other_delays_) {
      if (other.action != Intervention::Action::delay) continue;
      Intervention also = other;
      if (is_of_barrier(other)) {
        reversed.interventions.push_back(std::move(also));
        continue;
      }
      also.action = Intervention::Action::hold;
      also.until = hold.until;
      also.duration = bound_;
      reversed.interventions.push_back(std::move(also));
    }
    return reversed;
  }

  // Who has to come first does not wait for itself: it is as late as it was.
  bool is_of_barrier(const Intervention& late) const {
    return late.threads == Intervention::Threads::named &&
           late.thread.text == found_.barrier->thread.text;
  }

  RepairRuns& runs_;
  const DecisivePairOptions options_;
  std::optional<RepairLines> lines_;
  std::vector<LateThread> late_;
  Duration bound_{};
  std::vector<Intervention> other_delays_;  // besides the one at the critical point
  std::vector<ThreadStep> late_steps_;      // of the late thread, when the test passes
  std::string late_name_;
  size_t late_namesake_ = 0;
  std::optional<Intervention> late_without_lock_;  // where the critical point is under a lock
  std::optional<CriticalPoint> start_;             // where the plan is late, whatever that shows
  std::optional<State> best_;                      // where only a critical point was found
  std::optional<ThreadStep> behind_barrier_;       // none: its thread came no further
  DecisivePair found_;
};

}  // namespace

DecisivePair find_decisive_pair(RepairRuns& runs, const DecisivePairOptions& options) {
  return PairExperiments(runs, options)();
}

}  // namespace unflake
