#include "search/explain/cause_experiments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trace/happens_before.h"
#include "trace/names.h"
#include "trace/roles.h"
#include "trace/translation.h"
#include "util/text.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using Action = Intervention::Action;
using End = RepairRuns::End;

constexpr int runs_of_question = 2;
constexpr Duration shortest_hold = 500ms, longest_hold = 3s;
constexpr Duration idle_from = 1ms;  // a wait that took as long was for somebody else

class CauseQuestions {
 public:
  CauseQuestions(RepairRuns& runs, const DecisivePair& pair, const SuspectedCauses& suspected)
      : runs_(runs), pair_(pair), suspected_(suspected), lines_({}, nullptr) {}

  CauseExperiments operator()() {
    if (!pair_.critical || !pair_.passing || !pair_.failing) return {};
    if (suspected_.lost_wakeup) ask_who_waits_first();
    if (suspected_.async_wait && suspected_.wait) {
      ask_late_as_a_whole();
      ask_longer_wait();
      ask_shorter_wait();
    }
    if (pair_.barrier && suspected_.ordering) ask_after_its_end();
    return std::move(found_);
  }

 private:
  const Trace& passing() const { return *pair_.passing->trace; }
  const Trace& failing() const { return *pair_.failing->trace; }

  Duration lateness() const { return pair_.critical->late.duration; }

  Duration bound() const {
    return std::clamp(2 * (lateness() + pair_.passing->outcome.duration), shortest_hold,
                      longest_hold);
  }

  // In how many of a few runs it ends so. A hold that is not kept has shown that the order cannot
  // be.
  Count count(Trial trial, std::string why, End wanted, size_t own = no_own) {
    trial.why = std::move(why);
    Count found;
    for (int i = 0; i < runs_of_question && !runs_.is_over(); ++i) {
      const RepairRuns::Run run = runs_.run(trial);
      if (!run.ended() || run.end == End::refused) break;
      const HoldsSeen held = own == no_own ? HoldsSeen{} : holds_in(trial.plan, own, run.result);
      ++found.runs;
      found.hits += run.end == wanted && held.let_go + held.impossible == 0;
      if (found.hits < found.runs) break;
    }
    return found;
  }

  void tell(const std::string& what, const Count& count, std::string_view ended) {
    if (count.runs > 0)
      found_.tried.push_back(
          fmt::format("{}, {} of {} runs {}", what, count.hits, count.runs, ended));
  }

  // ---- Is it relied upon to be over, or must it only not be seen half done? ----

  void ask_late_as_a_whole() {
    const auto first = first_since_idle();
    if (!first) return;
    Trial trial = runs_.test().failing;
    trial.plan.interventions = others();
    Intervention late = late_before(pair_.critical->late, *first);
    late.threads = Intervention::Threads::named;
    late.thread = first->thread;
    trial.plan.interventions.push_back(late);
    found_.facts.late_as_a_whole = count(trial, "late before all that it does", End::passed);
    tell(fmt::format("with {} as late before all that it does",
                     who_is(passing(), passing().calls[first->call].thread)),
         found_.facts.late_as_a_whole, "passed");
  }

  // All lateness but that of the thread that comes too late.
  std::vector<Intervention> others() const {
    std::vector<Intervention> others;
    for (const Intervention& one : runs_.test().failing.plan.interventions)
      if (one.threads != Intervention::Threads::named ||
          one.thread.text != pair_.critical->step.thread.text)
        others.push_back(one);
    return others;
  }

  // The first thing that the late thread does after it was last given something to do. None where
  // nobody gives it anything, or that is all it does.
  std::optional<ThreadStep> first_since_idle() const {
    const ThreadStep& critical = pair_.critical->step;
    const uint32_t thread = passing().calls[critical.call].thread;
    if (thread == no_index || passing().threads[thread].parent == no_index) return std::nullopt;
    if (pair_.critical->whole_class) return std::nullopt;
    const Duration idle = idle_until(thread, critical.at);
    for (const ThreadStep& step :
         steps_without_lock(passing(), steps_of(passing(), thread, lines_))) {
      if (step.at < idle) continue;
      if (step.at >= critical.at) return std::nullopt;
      return step;
    }
    return std::nullopt;
  }

  Duration idle_until(uint32_t thread, Duration end) const {
    Duration idle{};
    for (const TracedCall& call : passing().calls) {
      if (call.thread != thread || call.is_intervention || call.exit > end || call.unfinished)
        continue;
      const TracedSite& site = passing().sites[call.site];
      const bool waits = may_wait(site) && !can_wake(site) && !is_lock(site) && !is_sleep(site);
      if (waits && call.exit - call.enter >= idle_from) idle = std::max(idle, call.exit);
    }
    return idle;
  }

  // ---- Does the wait guard it? ----

  std::optional<Intervention> other_time(Duration time) const {
    const SuspectedWait& wait = *suspected_.wait;
    if (!wait.asked || *wait.asked <= Duration{} || wait.site.api.empty()) return std::nullopt;
    Intervention change;
    change.action = Action::scale_time;
    change.site = wait.site;
    change.executable = wait.executable;
    change.threads = Intervention::Threads::any;
    const double factor =
        static_cast<double>(time.count()) / static_cast<double>(wait.asked->count());
    change.duration = std::max(Duration(1), Duration(std::llround(factor * 1e6)));  // of a second
    return change;
  }

  void ask_longer_wait() {
    if (suspected_.wait->times != 1) return;
    const auto change =
        other_time(*suspected_.wait->asked + 2 * lateness() + pair_.passing->outcome.duration);
    if (!change) return;
    Trial trial = runs_.test().failing;
    trial.plan.interventions.push_back(*change);
    found_.facts.longer_wait = count(trial, "with a longer wait", End::passed);
    tell("with that wait long enough for the late thread", found_.facts.longer_wait, "passed");
  }

  // That nothing happens then proves nothing: who is to come first may be quick.
  void ask_shorter_wait() {
    if (!suspected_.wait->is_sleep) return;
    const auto change = other_time(Duration(1));
    if (!change) return;
    Trial trial = runs_.test().passing;
    trial.plan.agent = true;
    trial.plan.interventions.push_back(*change);
    found_.facts.shorter_wait = count(trial, "with a shorter wait", End::failed);
    if (found_.facts.shorter_wait.hits > 0)
      tell("with that wait cut to nothing, and nobody late", found_.facts.shorter_wait, "failed");
  }

  // ---- Is it a wake-up that nobody waited for? ----

  static std::optional<ThreadStep> step_of_call(const Trace& trace, size_t call,
                                                const RepairLines& lines) {
    if (call >= trace.calls.size()) return std::nullopt;
    for (const ThreadStep& step : steps_of(trace, trace.calls[call].thread, lines))
      if (step.call == call) return step;
    return std::nullopt;
  }

  // Whoever signals with a lock is held back before it takes that: the other one needs it to wait.
  static std::optional<ThreadStep> free_step_for(const Trace& trace, size_t call,
                                                 const RepairLines& lines) {
    std::optional<ThreadStep> last;
    if (call >= trace.calls.size()) return last;
    for (const ThreadStep& step :
         steps_without_lock(trace, steps_of(trace, trace.calls[call].thread, lines))) {
      if (step.call > call) break;
      if (!step.woken_from) last = step;
    }
    return last;
  }

  // How often threads like it came there after the wake-up in the failing run.
  uint64_t waits_like(const ThreadStep& wait, const ThreadStep& signal) const {
    const std::string pool = thread_class_of(wait.thread.text);
    return static_cast<uint64_t>(
        std::ranges::count_if(failing().calls, [&](const TracedCall& call) {
          return !call.is_intervention && call.enter >= signal.at &&
                 call.site < failing().sites.size() &&
                 failing().sites[call.site].name == wait.site &&
                 thread_class_of(failing().threads[call.thread].name.text) == pool;
        }));
  }

  void ask_who_waits_first() {
    if (!suspected_.wake_up || pair_.hand_over) return;  // or that is what was shown already
    const auto wait = step_of_call(failing(), suspected_.wake_up->wait, lines_);
    const auto signal = free_step_for(failing(), suspected_.wake_up->signal, lines_);
    if (!wait || !signal) return;
    CriticalPoint first;
    first.step = *wait;
    first.when_reached = true;
    // One wake-up for all of a pool is held back until the last of them waits.
    if (const uint64_t all = waits_like(*wait, *signal); all > 1) {
      first.whole_class = true;
      first.step.visit = first.count = all;
    }
    Trial trial = runs_.test().failing;
    const size_t own = trial.plan.interventions.size();
    trial.plan = with_order(trial.plan, {{first, *signal}}, bound());
    found_.facts.waiting_first = count(trial, "the wait before the wake-up", End::passed, own);
    tell("with the wake-up held back until somebody waits for it", found_.facts.waiting_first,
         "passed");
  }

  // ---- Does it only have to come when the thread has ended? ----

  void ask_after_its_end() {
    CriticalPoint end;
    end.step = pair_.critical->step;
    end.step.site = end_of_thread();
    end.step.visit = 1;
    end.when_reached = true;
    if (pair_.critical->whole_class || end.step.thread.text == pair_.barrier->thread.text) return;
    const uint32_t thread = passing().calls[end.step.call].thread;
    if (thread == no_index || passing().threads[thread].parent == no_index) return;
    Trial trial = runs_.test().failing;
    const size_t own = trial.plan.interventions.size();
    trial.plan = with_order(trial.plan, {{end, *pair_.barrier}}, bound());
    found_.facts.after_its_end = count(trial, "not before its end", End::passed, own);
    tell(fmt::format("with the barrier point held back until {} has ended",
                     who_is(passing(), thread)),
         found_.facts.after_its_end, "passed");
  }

  static constexpr size_t no_own = static_cast<size_t>(-1);

  RepairRuns& runs_;
  const DecisivePair& pair_;
  const SuspectedCauses& suspected_;
  const RepairLines lines_;
  CauseExperiments found_;
};

}  // namespace

CauseExperiments ask_for_cause(RepairRuns& runs, const DecisivePair& pair,
                               const SuspectedCauses& suspected) {
  return CauseQuestions(runs, pair, suspected)();
}

}  // namespace unflake
