#include "search/repair/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "trace/happens_before.h"
#include "trace/names.h"
#include "trace/time_values.h"
#include "trace/translation.h"
#include "util/paths.h"

namespace unflake {
namespace {

using Action = Intervention::Action;
using Visits = Intervention::Visits;

constexpr size_t most_barriers = 60;

// When the plan's failure was captured; without one, the end.
Duration failed_at_time(const Trace& trace) {
  const TracedFailure* failure = main_failure(trace);
  return failure ? failure->at : Duration::max();
}

bool is_of(const Intervention& one, const Trace& trace, const TracedCall& late) {
  if (one.action != Action::delay && one.action != Action::hold) return false;
  // Of two that have a site in common, each has a thread of its own.
  if (one.threads == Intervention::Threads::named &&
      one.thread.text != trace.threads[late.thread].name.text)
    return false;
  // What a user or a file has named by its line need not say the function.
  return late.site < trace.sites.size() &&
         to_string(trace.sites[late.site].name) == to_string(one.site);
}

// A thread that is delayed before a line has come to it.
bool is_line_of(const Trace& trace, const TracedCall& call, const TracedCall& delay) {
  return &call + 1 == &delay && call.site == delay.site && call.site < trace.sites.size() &&
         trace.sites[call.site].name.api.empty();
}

}  // namespace

Intervention late_before(const Intervention& how, const ThreadStep& step) {
  Intervention late = how;
  late.action = Action::delay;
  late.until.reset();
  late.anchor.reset();
  late.site = step.site;
  late.executable = step.executable;
  late.position = Intervention::Position::before;
  late.visits = Visits::only_nth;
  late.nth = step.visit;
  if (late.threads != Intervention::Threads::in_class) {
    late.threads = Intervention::Threads::named;
    late.thread = step.thread;
  }
  if (step.woken_from) {
    late.site = step.woken_from->site;
    late.position = Intervention::Position::after;
    late.nth = step.woken_from->visit;
  }
  return late;
}

namespace {

class Boundary {
 public:
  Boundary(RepairRuns& runs, const CriticalSearch& search) : runs_(runs), search_(search) {}

  // Being late before the first step must fail, or the steps are not those that matter.
  std::optional<CriticalPoint> operator()() {
    if (search_.from >= search_.steps.size() || !fails(search_.from)) return std::nullopt;
    size_t last = last_that_fails(1);
    // By chance a run may fail that would not have failed.
    if (!is_sure(last) && last > search_.from) last = last_that_fails(runs_.to_be_sure());
    if (!is_sure(last)) return std::nullopt;
    return point(last);
  }

 private:
  size_t last_that_fails(int times) {
    size_t last = search_.from, end = search_.steps.size();
    while (end - last > 1 && !runs_.is_over()) {
      const size_t middle = last + (end - last) / 2;
      (fails(middle, times) ? last : end) = middle;
    }
    return last;
  }

  Trial late_at(size_t number) const {
    Trial trial = runs_.test().failing;
    trial.plan.interventions = search_.others;
    trial.plan.interventions.push_back(late_before(search_.late, search_.steps[number]));
    trial.why =
        search_.steps[number].thread.text + " late at " + to_string(search_.steps[number].site);
    return trial;
  }

  bool fails(size_t number) { return runs_.most_of(late_at(number)) == RepairRuns::End::failed; }

  bool fails(size_t number, int times) {
    for (int i = 0; i < times; ++i)
      if (!fails(number)) return false;
    return true;
  }

  bool is_sure(size_t number) { return fails(number, runs_.to_be_sure()) && !runs_.is_over(); }

  CriticalPoint point(size_t number) const {
    CriticalPoint found;
    found.step = search_.steps[number];
    if (number + 1 < search_.steps.size()) found.next = search_.steps[number + 1];
    found.late = late_at(number).plan.interventions.back();
    found.whole_class = search_.whole_class;
    return found;
  }

  RepairRuns& runs_;
  const CriticalSearch& search_;
};

}  // namespace

namespace {

size_t steps_before(const Trace& trace, const TracedCall& delay) {
  return static_cast<size_t>(std::ranges::count_if(trace.calls, [&](const TracedCall& call) {
    return call.thread == delay.thread && !call.is_intervention && call.enter < delay.enter &&
           !is_line_of(trace, call, delay);
  }));
}

}  // namespace

std::vector<LateThread> late_threads(const Plan& plan, const Trace& with_plan) {
  std::vector<LateThread> found;
  const Duration failed = failed_at_time(with_plan);
  std::vector<const TracedCall*> delays;
  for (const TracedCall& call : with_plan.calls)
    if (call.is_intervention && call.enter <= failed && call.thread < with_plan.threads.size())
      delays.push_back(&call);
  std::ranges::stable_sort(delays, {}, [](const TracedCall* call) { return call->enter; });
  for (const TracedCall* delay : delays) {
    const std::string& name = with_plan.threads[delay->thread].name.text;
    const size_t namesake = namesake_number(with_plan, delay->thread);
    auto known = std::ranges::find_if(found, [&](const LateThread& late) {
      return late.name == name && late.namesake == namesake;
    });
    if (known == found.end())
      known = found.insert(found.end(), LateThread{name, namesake, {}, {}, {}});
    known->behind.push_back(steps_before(with_plan, *delay));
    const auto asked = std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(delay->value));
    known->by += std::max(asked, delay->exit - delay->enter);
    for (size_t i = 0; i < plan.interventions.size(); ++i)
      if (is_of(plan.interventions[i], with_plan, *delay) &&
          !std::ranges::count(known->interventions, i))
        known->interventions.push_back(i);
  }
  return found;
}

std::optional<CriticalPoint> find_critical(RepairRuns& runs, const CriticalSearch& search) {
  return Boundary(runs, search)();
}

namespace {

constexpr size_t most_times_tried = 4;  // at which a thread is late

class LatePointSearch {
 public:
  LatePointSearch(RepairRuns& runs, const Trace& passing, const RepairLines& lines)
      : runs_(runs), passing_(passing), lines_(lines) {}

  LatePoints operator()(const std::vector<LateThread>& all) {
    for (const LateThread& late : all) find_critical_of(late);
    return std::move(found_);
  }

 private:
  // A plan may make a thread late again and again, and only one time matters: most likely the last.
  static std::vector<size_t> times_to_try(const LateThread& late) {
    std::vector<size_t> times(late.behind.rbegin(), late.behind.rend());
    times.erase(std::ranges::unique(times).begin(), times.end());
    if (times.size() > most_times_tried)
      times.erase(times.begin() + most_times_tried - 1, times.end() - 1);
    return times;
  }

  // An instruction: the line that it belongs to is a step that has begun.
  static bool is_within_line(const SiteName& site) { return site.line == 0 && site.api.empty(); }

  static void add_lines_around(LateThread& late) {
    std::vector<size_t> behind;
    for (const size_t steps : late.behind) {
      if (steps > 0) behind.push_back(steps - 1);
      behind.push_back(steps);
    }
    late.behind = std::move(behind);
  }

  static std::string counted_steps(const CriticalSearch& search) {
    const size_t steps = search.steps.size() - std::min(search.steps.size(), search.from);
    return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
  }

  void find_critical_of(LateThread late) {
    CriticalSearch search = search_for(runs_.test().failing.plan, passing_, lines_, late);
    if (search.steps.empty()) return;
    if (!search.whole_class && is_within_line(search.late.site)) add_lines_around(late);
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
      if (auto found = find_without_lock(search)) return found;
    }
    return std::nullopt;
  }

  // Who is late with a lock keeps others waiting for it, so that nothing goes wrong: between such
  // steps, the last one that fails cannot be found by halving.
  std::optional<CriticalPoint> find_without_lock(const CriticalSearch& search) {
    CriticalSearch free = search;
    free.steps = steps_without_lock(passing_, search.steps);
    const auto number_of = [&](const ThreadStep& step) {
      const auto at = std::ranges::find(search.steps, step.call, &ThreadStep::call);
      return static_cast<size_t>(at - search.steps.begin());
    };
    const auto first = std::ranges::find_if(
        free.steps, [&](const ThreadStep& step) { return number_of(step) >= search.from; });
    const bool has_others = first != free.steps.end() && free.steps.size() < search.steps.size();
    if (!has_others) return std::nullopt;
    free.from = static_cast<size_t>(first - free.steps.begin());
    auto found = find_critical(runs_, free);
    if (!found) return std::nullopt;
    const size_t next = number_of(found->step) + 1;
    if (next < search.steps.size()) found->next = search.steps[next];
    return found;
  }

  void keep_critical(const CriticalSearch& search, std::optional<CriticalPoint> found) {
    if (found) {
      found->count = passes_until(passing_, found->step, lines_);
      runs_.say(fmt::format("critical: {}, the last step before which being late makes it fail",
                            short_name(found->step)));
      found_.criticals.push_back(*found);
      if (waits_there(found->step)) {
        found->when_reached = true;
        found_.weaker.push_back(*found);
      }
    }
    if (search.steps.empty() || (found && search.steps.size() <= search.from)) return;
    CriticalPoint end;  // whatever the thread still does
    end.step = search.steps.back();
    end.late = search.late;
    end.whole_class = search.whole_class;
    end.count = passes_until(passing_, end.step, lines_);
    if (!found || found->next) (found ? found_.weaker : found_.criticals).push_back(std::move(end));
  }

  bool waits_there(const ThreadStep& step) const {
    return may_wait(passing_.sites[passing_.calls[step.call].site]);
  }

  RepairRuns& runs_;
  const Trace& passing_;
  const RepairLines& lines_;
  LatePoints found_;
};

}  // namespace

namespace {

// Which thread of a class comes there differs from run to run.
void find_in_class(CriticalSearch& search, const Trace& passing, const RepairLines& lines,
                   LateThread& late) {
  const std::string wanted = to_string(search.late.site);
  for (uint32_t i = 0; i < passing.threads.size(); ++i) {
    if (thread_class_of(passing.threads[i].name.text) != thread_class_of(late.name)) continue;
    auto steps = steps_of(passing, i, lines, true);
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

}  // namespace

CriticalSearch search_for(const Plan& plan, const Trace& passing, const RepairLines& lines,
                          LateThread& late) {
  CriticalSearch search;
  const uint32_t thread = thread_like(passing, late.name, late.namesake);
  if (thread == no_index || late.interventions.empty()) return search;
  search.late = plan.interventions[late.interventions.front()];
  search.late.duration = std::max(late.by, least_lateness);
  search.whole_class = search.late.threads == Intervention::Threads::in_class;
  search.steps = steps_of(passing, thread, lines, search.whole_class);
  if (search.whole_class) find_in_class(search, passing, lines, late);
  return search;
}

LatePoints find_late_points(RepairRuns& runs, const Trace& passing, const RepairLines& lines,
                            const std::vector<LateThread>& late) {
  return LatePointSearch(runs, passing, lines)(late);
}

uint64_t passes_until(const Trace& trace, const ThreadStep& step, const RepairLines& lines) {
  if (!lines.is_shared(step.site)) return passes_until(trace, step);
  std::vector<const TracedCall*> calls;
  for (const TracedCall& call : trace.calls)
    if (!call.is_intervention && call.site < trace.sites.size() && call.enter <= step.at)
      calls.push_back(&call);
  std::ranges::stable_sort(
      calls, {}, [](const TracedCall* call) { return std::pair(call->thread, call->enter); });
  uint64_t passes = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool goes_on =
        i > 0 && calls[i - 1]->thread == calls[i]->thread && calls[i - 1]->site == calls[i]->site;
    passes += !goes_on && trace.sites[calls[i]->site].name == step.site;
  }
  return std::max<uint64_t>(1, passes);
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

namespace {

void watch_thread(Intervention& watch, const CriticalPoint& critical) {
  watch.action = Action::watch;
  watch.executable = critical.step.executable;
  watch.thread = critical.step.thread;
  watch.threads = critical.step.thread.text.empty() ? Intervention::Threads::any
                  : critical.whole_class            ? Intervention::Threads::in_class
                                                    : Intervention::Threads::named;
}

}  // namespace

namespace {

// The line must have been reached: a later one may be reached without it.
void watch_critical(std::vector<Intervention>& all, const CriticalPoint& critical) {
  Intervention reached;
  watch_thread(reached, critical);
  reached.site = critical.step.site;
  reached.visits = Visits::from_nth;
  reached.nth = critical.step.visit;
  const bool comes_again = critical.next && critical.next->site == critical.step.site;
  if (comes_again) ++reached.nth;
  all.push_back(reached);
  if (comes_again || critical.when_reached) return;
  Intervention passed;
  watch_thread(passed, critical);
  passed.site = critical.next ? critical.next->site : end_of_thread();
  passed.anchor = all.size() - 1;
  all.push_back(passed);
}

Intervention hold_before(const HandOverPoints& points, Duration bound) {
  const ThreadStep& barrier = points.barrier;
  Intervention hold;
  hold.action = Action::hold;
  hold.site = barrier.site;
  hold.executable = barrier.executable;
  const bool is_one_pool =
      points.critical.whole_class &&
      thread_class_of(points.critical.step.thread.text) == thread_class_of(barrier.thread.text);
  hold.threads = is_one_pool ? Intervention::Threads::in_class : Intervention::Threads::named;
  hold.thread = barrier.thread;
  hold.duration = bound;
  return hold;
}

// One watch counts for all: what comes as soon as the critical step is over.
void add_turns(std::vector<Intervention>& all, const HandOverPoints& points, Duration bound) {
  Intervention over;
  watch_thread(over, points.critical);
  over.site = points.critical.next->site;
  all.push_back(over);
  const size_t watch = all.size() - 1;
  for (uint64_t round = points.turns->ahead + 1; round <= points.turns->rounds; ++round) {
    Intervention hold = hold_before(points, bound);
    hold.visits = Visits::only_nth;
    hold.nth = round;
    hold.until = watch;
    hold.count = round - points.turns->ahead;
    all.push_back(hold);
  }
}

}  // namespace

Plan with_order(Plan plan, const std::vector<HandOverPoints>& order, Duration bound) {
  for (const HandOverPoints& points : order) {
    if (points.turns) {
      add_turns(plan.interventions, points, bound);
      continue;
    }
    watch_critical(plan.interventions, points.critical);
    Intervention hold = hold_before(points, bound);
    hold.visits = points.barrier.visit > 1 ? Visits::from_nth : Visits::every;
    hold.nth = points.barrier.visit;
    hold.until = plan.interventions.size() - 1;
    plan.interventions.push_back(hold);
  }
  return plan;
}

namespace {

constexpr uint64_t most_rounds = 32;      // that a plan holds one by one
constexpr size_t most_steps_behind = 12;  // the critical one, to what is passed as often

uint64_t visits_of(const Trace& trace, const ThreadStep& step) {
  return static_cast<uint64_t>(std::ranges::count_if(trace.calls, [&](const TracedCall& call) {
    return !call.is_intervention && call.site < trace.sites.size() &&
           call.thread < trace.threads.size() && trace.sites[call.site].name == step.site &&
           trace.threads[call.thread].name.text == step.thread.text;
  }));
}

}  // namespace

std::optional<HandOverPoints> in_turn(const HandOverPoints& points, const Trace& passing,
                                      const RepairLines& lines) {
  const ThreadStep& critical = points.critical.step;
  const uint64_t rounds = visits_of(passing, points.barrier);
  if (points.critical.whole_class || rounds < 2 || rounds > most_rounds) return std::nullopt;
  const auto steps = steps_of(passing, thread_named(passing, critical.thread.text), lines);
  const auto at = std::ranges::find(steps, critical.call, &ThreadStep::call);
  size_t tried = 0;
  for (auto over = at; over != steps.end() && tried < most_steps_behind; ++over, ++tried) {
    if (over == at || over->site == critical.site || visits_of(passing, *over) != rounds ||
        over->visit > points.barrier.visit)
      continue;
    HandOverPoints found = points;
    found.critical.step = *std::prev(over);
    found.critical.next = *over;
    found.critical.when_reached = false;
    found.turns = Turns{points.barrier.visit - over->visit, rounds};
    return found;
  }
  return std::nullopt;
}

namespace {

// Lines between that were not visited are of another branch.
bool leads_straight_on(const CriticalPoint& critical, const RepairLines& lines) {
  const CodeSpot &from = critical.step.spot, &to = critical.next->spot;
  if (from.file != to.file || from.function != to.function || to.line <= from.line) return false;
  return std::ranges::none_of(lines.of_function(from.function), [&](const SiteName& line) {
    return line.line > from.line && line.line < to.line;
  });
}

}  // namespace

HandOver hand_over_of(const HandOverPoints& points, const RepairLines* lines) {
  const CriticalPoint& critical = points.critical;
  HandOver found{place_of(critical.step), place_of(points.barrier), critical.count};
  // Which of them it is differs from run to run.
  const std::string pool = thread_class_of(critical.step.thread.text);
  if (critical.whole_class) found.critical.thread = pool + "#*";
  if (critical.whole_class && thread_class_of(points.barrier.thread.text) == pool)
    found.barrier.thread = pool + "#*";
  if (points.turns) found.ahead = points.turns->ahead;
  // Where the thread goes on tells which function of a line has been at work.
  if (lines && critical.next && lines->is_shared(critical.step.site) &&
      lines->is_line_of(critical.step.site, critical.next->spot.function))
    found.critical.spot.function = critical.next->spot.function;
  found.across_processes = critical.step.process != points.barrier.process;
  if (lines && critical.next && !critical.when_reached && leads_straight_on(critical, *lines))
    found.over_at = critical.next->spot;
  return found;
}

namespace {

// The project's functions on the stack of a failure, innermost first.
std::vector<std::string> failing_functions(const Trace& trace) {
  std::vector<std::string> functions;
  const TracedFailure* failure = main_failure(trace);
  if (failure == nullptr) return functions;
  const std::set<std::string> files = project_files(trace);
  for (const TracedFrame& frame : failure->stack.frames)
    for (const Frame& source : frame.source)
      if (is_own(frame, source) && files.contains(source.file) &&
          !std::ranges::count(functions, source.function))
        functions.push_back(source.function);
  return functions;
}

class BarrierOrder {
 public:
  BarrierOrder(const Trace& failing, const RepairLines& lines, const BarrierHints& hints)
      : trace_(failing), hints_(hints), functions_(failing_functions(failing)) {
    const Duration end = failed_at_time(failing);
    const TracedFailure* failure = main_failure(failing);
    for (uint32_t thread = 0; thread < failing.threads.size(); ++thread) {
      const std::string& name = failing.threads[thread].name.text;
      if (std::ranges::count(hints.late, name)) continue;
      for (ThreadStep& step : steps_of(failing, thread, lines))
        if (step.at <= end) steps_.push_back(std::move(step));
      if (failure && failure->thread == thread) failing_thread_ = name;
    }
    std::ranges::stable_sort(steps_, std::greater(), &ThreadStep::at);
  }

  // Each list is from late to early. A step that several lists have is tried once.
  std::vector<ThreadStep> operator()() {
    for (size_t depth = 0; depth < functions_.size(); ++depth) {
      add_statements_of(functions_[depth]);
      if (depth == 0) add([&](const ThreadStep& step) { return is_named(step); });
    }
    add([&](const ThreadStep& step) { return is_named(step); });
    add([&](const ThreadStep& step) { return is_failing(step); });
    add([&](const ThreadStep& step) { return wakes(step); });
    add([&](const ThreadStep&) { return true; });
    if (chosen_.size() > most_barriers) chosen_.resize(most_barriers);
    return std::move(chosen_);
  }

 private:
  bool is_failing(const ThreadStep& step) const { return step.thread.text == failing_thread_; }
  bool is_named(const ThreadStep& step) const {
    return std::ranges::any_of(hints_.named, [&](const SiteName& site) {
      return site == step.site || (step.is_line() && site.line > 0 && site.line == step.site.line &&
                                   base_name(site.file) == base_name(step.site.file));
    });
  }
  bool wakes(const ThreadStep& step) const {
    return can_wake(trace_.sites[trace_.calls[step.call].site]);
  }

  // Where in the function the step is, or is called from; line 0: in neither.
  CodeSpot spot_in(const ThreadStep& step, const std::string& function) const {
    if (step.spot.function == function) return step.spot;
    const uint32_t stack = trace_.calls[step.call].stack;
    if (stack >= trace_.stacks.size()) return {};
    for (const TracedFrame& frame : trace_.stacks[stack].frames)
      for (const Frame& source : frame.source)
        if (source.function == function) return {source.file, source.line, source.function};
    return {};
  }

  // The first thing that each line of the function does, itself or by what it calls: to wait there
  // is to wait before the line.
  void add_statements_of(const std::string& function) {
    std::vector<ThreadStep> firsts;
    CodeSpot before;
    for (const ThreadStep& step : steps_ | std::views::reverse) {
      if (!is_failing(step)) continue;
      const CodeSpot spot = spot_in(step, function);
      if (spot.line <= 0 || spot == before) continue;  // lines of others come without a stack
      firsts.push_back(step);
      firsts.back().spot = spot;
      before = spot;
    }
    for (const ThreadStep& step : firsts | std::views::reverse)
      if (taken_.insert(step.call).second) chosen_.push_back(step);
  }

  template <class Accepts>
  void add(Accepts accepts) {
    for (const ThreadStep& step : steps_)
      if (accepts(step) && taken_.insert(step.call).second) chosen_.push_back(step);
  }

  const Trace& trace_;
  const BarrierHints& hints_;
  const std::vector<std::string> functions_;
  std::string failing_thread_;
  std::vector<ThreadStep> steps_;
  std::vector<ThreadStep> chosen_;
  std::set<size_t> taken_;
};

}  // namespace

std::vector<ThreadStep> barrier_candidates(const Trace& failing, const RepairLines& lines,
                                           const BarrierHints& hints) {
  return BarrierOrder(failing, lines, hints)();
}

std::optional<GuessedWait> guessed_wait(const Trace& failing, const ThreadStep& barrier,
                                        const RepairLines& lines) {
  const uint32_t thread = thread_named(failing, barrier.thread.text);
  std::optional<GuessedWait> longest;
  for (const ThreadStep& step : steps_of(failing, thread, lines)) {
    const TracedCall& call = failing.calls[step.call];
    const TracedSite& site = failing.sites[call.site];
    if (step.at > barrier.at || !may_wait(site) || !takes_time(site) || call.value < 0) continue;
    const Duration asked = meant_time(call.value);
    if (!is_sleep(site) && !call.timed_out) continue;  // it got what it waited for
    if (longest && longest->asked > asked) continue;
    longest = GuessedWait{place_of(step), asked, is_sleep(site)};
  }
  return longest;
}

}  // namespace unflake
