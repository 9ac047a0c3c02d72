#include "search/repair/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

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

constexpr Duration shortest_bound = 1s, longest_bound = 10s;
constexpr int runs_of_stop_gap = 5;
constexpr int quick_runs = 3;                   // of an order, before it is verified
constexpr int noisy_quick_runs = 6;             // where half of the runs would pass anyway
constexpr int most_visits_tried = 3;            // of one place
constexpr size_t most_barriers_of_timing = 12;  // where time alone explains the failure
constexpr int most_completions = 2;       // of orders that help against one lateness of several
constexpr size_t most_places_late = 8;    // of another thread
constexpr Duration late_in_turn = 100ms;  // of another thread than the plan's, at least

const std::function<void(const EnforcedRepair&)> tell_nobody;

bool has_answer(const RepairReport& report) {
  return !report.repairs.empty() || !report.deadlock.empty() || report.exact_timing;
}

class RepairSearch {
 public:
  RepairSearch(RepairRuns& runs, const RepairOptions& options,
               const std::function<void(const EnforcedRepair&)>& found)
      : runs_(runs),
        options_(options),
        limits_(options.verification),
        tell_found_(found),
        recorded_(runs, options.compare) {}

  RepairReport operator()() {
    report_.method = "short cut";
    runs_.runner().teller().begin("repair", "what came too late, and what has to wait for it");
    if (runs_.is_under_control())
      runs_.say("it passes and fails alike under control, where lateness takes no time");
    if (recorded_(report_) && report_.deadlock.empty()) {
      search();
      if ((!is_done() || (timing_ && report_.repairs.empty())) && !is_other_side_) ask_for_timing();
      if (report_.repairs.empty() && !is_other_side_) find_wait();
      if (!is_done() && !is_other_side_ && !report_.exact_timing) find_stop_gap();
    }
    return finished();
  }

 private:
  const Trace& failing() const { return *recorded_.failing().trace; }
  const Trace& passing() const { return *recorded_.passing().trace; }
  const RepairLines& lines() const { return recorded_.lines(); }
  bool is_inverted() const { return runs_.test().failing.plan.interventions.empty(); }

  // ---- What came too late ----

  void search() {
    late_ = late_threads(runs_.test().failing.plan, failing());
    set_bound();
    if (late_.empty()) return hold_without_lateness();
    if (is_late_itself()) ask_for_timing_first();
    if (runs_.is_over()) return;
    const LatePoints found = find_late_points(runs_, passing(), lines(), late_);
    for (const CriticalPoint& critical : found.criticals) {
      if (is_done()) return;
      try_barriers({critical});
    }
    if (found.criticals.size() > 1 && !is_done()) try_barriers(found.criticals);
    for (const CriticalPoint& critical : found.weaker)
      if (!is_done()) try_barriers({critical});
  }

  // Only the thread that fails is late.
  bool is_late_itself() const {
    const TracedFailure* failure = main_failure(failing());
    return !is_other_side_ && late_.size() == 1 && failure != nullptr &&
           failure->thread < failing().threads.size() &&
           failing().threads[failure->thread].name.text == late_.front().name;
  }

  // Orders for what is a matter of time are tried long, and in vain.
  void ask_for_timing_first() {
    is_timing_asked_ = true;
    TimingQuestion question = timing_question();
    LateThread late = late_.front();
    search_for(runs_.test().failing.plan, passing(), lines(), late);
    if (!late.behind.empty()) question.behind = late.behind.back();
    timing_ = recognise_exact_timing(runs_, question);
    if (timing_) most_barriers_ = std::min(most_barriers_, most_barriers_of_timing);
  }

  bool is_done() const { return !report_.repairs.empty() || !partial_.empty() || runs_.is_over(); }

  void set_bound() {
    Duration late{};
    for (const LateThread& one : late_) late = std::max(late, one.by);
    limits_.bound = std::clamp(4 * (late + recorded_.passing().outcome.duration), shortest_bound,
                               longest_bound);
  }

  // ---- What has to wait ----

  void try_barriers(const std::vector<CriticalPoint>& criticals) {
    BarrierHints hints{{}, recorded_.named_barriers()};
    for (const CriticalPoint& critical : criticals) hints.late.push_back(critical.step.thread.text);
    if (std::ranges::any_of(criticals, &CriticalPoint::whole_class)) hints.late = late_names();
    auto candidates = barrier_candidates(failing(), lines(), hints);
    // A patch waits whenever the place is reached: what must not wait the first time comes last.
    std::ranges::stable_partition(candidates,
                                  [](const ThreadStep& step) { return step.visit == 1; });
    // Nor can it tell one thread from another: who is waited for must not have to wait there.
    std::ranges::stable_partition(candidates, [&](const ThreadStep& step) {
      return std::ranges::none_of(criticals, [&](const CriticalPoint& critical) {
        return comes_there_before(critical, step);
      });
    });
    std::map<std::string, int> tried;
    for (size_t i = 0; i < candidates.size() && i < most_barriers_ && !is_done(); ++i) {
      const std::string place = to_string(candidates[i].site) + "@" +
                                std::string(thread_class_of(candidates[i].thread.text));
      if (++tried[place] > most_visits_tried) continue;
      std::vector<HandOverPoints> order;
      for (const CriticalPoint& critical : criticals)
        if (const ThreadStep* barrier = earlier(candidates, i, order.size()))
          order.push_back({critical, *barrier});
      if (order.size() != criticals.size()) continue;
      if (order.size() == 1 && order[0].barrier.visit > 1)
        if (const auto turns = in_turn(order[0], passing(), lines());
            turns && (try_order({*turns}) || is_done()))
          continue;
      if (try_order(order) || is_done()) continue;
      if (const auto more = counted_until(order)) try_order(*more);
    }
  }

  bool comes_there_before(const CriticalPoint& critical, const ThreadStep& step) const {
    return std::ranges::any_of(passing().calls, [&](const TracedCall& call) {
      if (call.is_intervention || call.enter > critical.step.at ||
          call.site >= passing().sites.size() || call.thread >= passing().threads.size())
        return false;
      const SiteName& site = passing().sites[call.site].name;
      return passing().threads[call.thread].name.text == critical.step.thread.text &&
             site.line == step.site.line && site.file == step.site.file;
    });
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
    const auto others = steps_of(passing(), thread_named(passing(), barrier.thread.text), lines());
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
    if (!verdict.objection.empty()) drop(order, verdict.objection);
    if (verdict.is_partial) return complete(order);
    if (!verdict.objection.empty() || !verdict.is_complete) return false;
    // Schedules would have told.
    const bool is_partial =
        !verdict.runs.why_no_schedules.empty() && !is_other_side_ && fails_with(order);
    if (is_partial && complete(order)) return true;
    if (is_partial)
      report_.notes.push_back(
          "with this order the failure still comes when another thread is late, which no other "
          "order was found for");
    keep(order, verdict.runs);
    return true;
  }

  // ---- When one order is not enough ----

  using Order = std::vector<HandOverPoints>;

  // It helps when the plan's thread is late, and the same failure comes when another one is: that
  // takes an order of its own. Whether both together are kept.
  bool complete(const Order& order) {
    if (is_one_of_several_) partial_ = order;
    if (is_other_side_ || ++completions_ > most_completions) return false;
    for (const Trial& late : others_late(order)) {
      if (runs_.is_over()) return false;
      if (!fails_in_spite_of(order, late) || !runs_.fails_every_time(late)) continue;
      const Order second = order_against(late);
      if (!second.empty() && try_both(order, second, late)) return true;
    }
    return false;
  }

  // Who is waited for, at what it does after that; who waits, before it, and at what it does until
  // then.
  std::vector<Trial> others_late(const Order& order) const {
    std::vector<Trial> trials;
    for (const HandOverPoints& points : order) {
      const ThreadStep &critical = points.critical.step, &barrier = points.barrier;
      trials.push_back(late_at(barrier));
      add_late(trials, critical.thread.text, [&](const ThreadStep& step) {
        return step.at > critical.at && step.site != critical.site;
      });
      add_late(trials, barrier.thread.text,
               [&](const ThreadStep& step) { return step.site != barrier.site; });
    }
    return trials;
  }

  // At the first places that are accepted.
  template <class Accepts>
  void add_late(std::vector<Trial>& trials, const std::string& thread, Accepts accepts) const {
    std::set<SiteName> tried;
    for (const ThreadStep& step : steps_of(passing(), thread_named(passing(), thread), lines()))
      if (tried.size() < most_places_late && accepts(step) && tried.insert(step.site).second)
        trials.push_back(late_at(step));
  }

  Trial late_at(const ThreadStep& step) const {
    Intervention delay;
    delay.duration = std::max(2 * lateness(), late_in_turn);
    Trial trial = runs_.test().passing;
    trial.plan.interventions = {late_before(delay, step)};
    // Before it, a thread has the lock that the others need.
    const bool is_condition = std::ranges::any_of(passing().sites, [&](const TracedSite& site) {
      return site.name == step.site && site.group == "condition";
    });
    if (is_condition) trial.plan.interventions[0].position = Intervention::Position::after;
    trial.plan.agent = true;
    trial.why = step.thread.text + " late instead";
    return trial;
  }

  bool fails_with(const Order& order) {
    return std::ranges::any_of(others_late(order), [&](const Trial& late) {
      return fails_in_spite_of(order, late) && fails_in_spite_of(order, late);
    });
  }

  bool fails_in_spite_of(const Order& order, Trial late) {
    late.plan = with_order(late.plan, order, limits_.bound);
    return runs_.run(late).end == End::failed;
  }

  Order order_against(const Trial& late) {
    const Trial before = std::exchange(runs_.test().failing, late);
    runs_.say("the same failure comes when others are late: looking for what else has to wait");
    RepairSearch other(runs_, options_, tell_nobody);
    other.is_other_side_ = other.is_one_of_several_ = true;
    (void)other();
    runs_.test().failing = before;
    return other.partial_.empty() ? other.kept_ : other.partial_;
  }

  bool try_both(const Order& first, const Order& second, const Trial& late) {
    Order both = first;
    both.insert(both.end(), second.begin(), second.end());
    Verification verify(runs_, limits_);
    const Trial before = std::exchange(runs_.test().failing, late);
    const std::string why = verify.quick_objection(both, quick_tries());
    runs_.test().failing = before;
    if (runs_.is_over()) return false;
    if (!why.empty()) return drop(both, why);
    const Verification::Verdict verdict = verify(both);
    if (!verdict.objection.empty()) return drop(both, verdict.objection);
    if (!verdict.is_complete) return false;
    keep(both, verdict.runs);
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
      parts.push_back(fmt::format("{} waits for {}{}", short_name(one.barrier),
                                  short_name(one.critical.step), one.turns ? " each time" : ""));
    return join(parts, "; ");
  }

  std::vector<HandOver> hand_overs_of(const std::vector<HandOverPoints>& order) const {
    std::vector<HandOver> all;
    for (const HandOverPoints& one : order) all.push_back(hand_over_of(one, &lines()));
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
    report_.wait = guessed_wait(failing(), order.front().barrier, lines());
    kept_ = order;
    if (tell_found_) tell_found_(repair);
    report_.repairs.push_back(std::move(repair));
  }

  // ---- When the failing run has nobody late: it fails by itself, or on a scarce machine ----

  // A later step of the other thread is a stronger condition: the last one first, then the earliest
  // that is enough.
  void hold_without_lateness() {
    runs_.say("nobody is late in the failing run: trying what others have done by then");
    const auto barriers = barrier_candidates(failing(), lines(), {{}, recorded_.named_barriers()});
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
    const auto steps = steps_of(passing(), thread, lines());
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

  TimingQuestion timing_question() const {
    return {passing(), failing(), lines(), lateness(), options_.slack, options_.machine, {}};
  }

  void ask_for_timing() {
    if (is_timing_asked_) return (void)(report_.exact_timing = timing_);
    TimingQuestion question = timing_question();
    question.is_order = [this](const Intervention& itself) { return repairs_other_side(itself); };
    report_.exact_timing = recognise_exact_timing(runs_, question);
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

  // All that keeps the order now, whatever it is.
  void find_wait() {
    const auto barriers = barrier_candidates(failing(), lines(), {late_names(), {}});
    if (barriers.empty()) return;
    ThreadStep end = barriers.front();
    end.at = Duration::max();
    report_.wait = guessed_wait(failing(), end, lines());
  }

  // The dual of a hand-over: the reading side waits for a time, and hopes.
  void find_stop_gap() {
    const auto barriers =
        barrier_candidates(failing(), lines(), {late_names(), recorded_.named_barriers()});
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
    if (recorded_.has_both()) report_.ran_out = wait_that_ran_out(passing(), failing(), lines());
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
  bool is_other_side_ = false;      // of another search, which says the rest
  bool is_one_of_several_ = false;  // half of a repair is enough
  int completions_ = 0;
  size_t most_barriers_ = options_.most_barriers;
  bool is_timing_asked_ = false;
  std::optional<ExactTiming> timing_;
  Order partial_, kept_;  // that helps against one of several; that is a repair
  RepairReport report_;
  std::vector<LateThread> late_;
  RecordedRuns recorded_;
};

}  // namespace

RepairReport find_repair(RepairRuns& runs, const RepairOptions& options,
                         const std::function<void(const EnforcedRepair&)>& found) {
  const bool controlled = options.under_control && runs.go_under_control();
  RepairReport report = RepairSearch(runs, options, found)();
  report.under_control = controlled;
  if (!controlled || runs.is_over() || has_answer(report)) return report;
  runs.leave_control();
  runs.say("nothing found under control: the same on free cores");
  return RepairSearch(runs, options, found)();
}

}  // namespace unflake
