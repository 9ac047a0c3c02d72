#include "explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "explain/call_order.h"
#include "explain/hang.h"
#include "explain/root_cause.h"
#include "trace/names.h"
#include "util/paths.h"

namespace unflake {
namespace {

constexpr int most_lines_apart = 100;  // of checks of one function

// Of checks that end alike compilers keep one end, with the line of one of them: whoever printed
// another line of the same file near there was that one.
void name_merged_line(TracedFailure& failure, const Failure& told) {
  Frame* nearest = nullptr;
  const auto distance = [&](const Frame& frame) { return std::abs(frame.line - told.line); };
  for (TracedFrame& frame : failure.stack.frames)
    for (Frame& source : frame.source)
      if (source.line > 0 && base_name(source.file) == base_name(told.file) &&
          (nearest == nullptr || distance(source) < distance(*nearest)))
        nearest = &source;
  if (nearest == nullptr || distance(*nearest) > most_lines_apart) return;
  nearest->line = failure.line = told.line;
  failure.file = nearest->file;
}

// Where a framework is part of the project, the first project frame of a failed check is the
// framework's own. The outcome knows better, if the stack has its line.
void name_failing_line(ObservedRun& run) {
  if (run.outcome.failures.empty() || run.outcome.failures.front().line == 0) return;
  const Failure& told = run.outcome.failures.front();
  const auto is_there = [&](const Frame& frame) { return is_same_line(frame, told); };
  for (TracedFailure& failure : run.trace.failures) {
    bool is_known = false;
    for (const TracedFrame& frame : failure.stack.frames)
      if (const auto found = std::ranges::find_if(frame.source, is_there);
          found != frame.source.end()) {
        failure.file = found->file;
        failure.line = told.line;
        is_known = true;
      }
    if (!is_known) name_merged_line(failure, told);
  }
}

class Explainer {
 public:
  Explainer(const Repro& repro, const ObservedRun* passing, const ObservedRun* failing,
            const ExplainOptions& options)
      : repro_(repro), passing_(passing), failing_(failing), options_(options) {}

  Explanation operator()() {
    if (passing_ && failing_)
      order_ = order_calls(passing_->trace, failing_->trace, repro_.passes_under_plan,
                           options_.wrappers);
    found_.experiments = options_.experiments;
    found_.facts = options_.facts;
    if (order_) found_.wake_up = missed_wake_up(*order_);
    find_late_threads();
    find_failure();
    find_pair();
    tell_ending();
    found_.unseen = why_unseen();
    if (!found_.unseen.empty()) return without_cause();
    Clues clues{&repro_,       passing_, failing_,           order_ ? &*order_ : nullptr,
                pair_,         &found_,  options_.other_way, options_.is_place_chosen,
                options_.shown};
    found_.causes = root_causes_of(clues);
    if (CauseFacts::never(found_.facts.longer_wait)) found_.wait.reset();
    if (found_.causes.front().kind == RootCauseKind::unknown) tell_what_was_tried();
    add_notes();
    return std::move(found_);
  }

 private:
  const ObservedRun* with_plan() const { return repro_.passes_under_plan ? passing_ : failing_; }

  static std::string position_text(Intervention::Position position) {
    switch (position) {
      case Intervention::Position::before:
        return "before";
      case Intervention::Position::after:
        return "after";
      case Intervention::Position::start:
        return "at the start of the thread that is created by";
    }
    return "";
  }

  // Of a hang or a crash more can be told than where it was noticed.
  void tell_ending() {
    if (!failing_) return;
    found_.ending = failing_->memory;
    if (failing_->outcome.kind != OutcomeKind::timeout) return;
    const Wrappers wrappers({&failing_->trace}, options_.wrappers);
    found_.ending = describe_hang(failing_->trace, passing_ ? &passing_->trace : nullptr, wrappers);
  }

  void find_late_threads() {
    for (size_t i = 0; i < repro_.plan.interventions.size(); ++i) {
      const Intervention& what = repro_.plan.interventions[i];
      if (what.action == Intervention::Action::watch) continue;
      Lateness late;
      late.thread = what.threads == Intervention::Threads::any ? "" : what.thread.text;
      late.site = to_string(what.site);
      late.position = position_text(what.position);
      late.place = {what.site.file, what.site.line, what.site.function};
      if (i < repro_.sites.size() && late.place.function.empty())
        late.place.function = repro_.sites[i].function;
      late.longest = what.duration;
      if (what.until && *what.until < repro_.plan.interventions.size())
        late.waits_for =
            to_string(repro_.plan.interventions[*what.until], repro_.plan.interventions);
      if (with_plan()) complete(late, what, i);
      found_.late.push_back(std::move(late));
    }
  }

  // Several interventions may have one site; a hold says which one it is.
  static bool is_of_another(const TracedCall& call, size_t number) {
    return call.object != 0 && call.object != number + 1;
  }

  // What the run under the plan says about an intervention.
  void complete(Lateness& late, const Intervention& what, size_t number) const {
    const Trace& trace = with_plan()->trace;
    late.place = place_of(trace, what.site);
    if (late.place.line == 0 && passing_) late.place = place_of(passing_->trace, what.site);
    if (number < trace.interventions.size()) late.times = trace.interventions[number].fired;
    bool first = true;
    for (const TracedCall& call : trace.calls) {
      if (!call.is_intervention || call.site >= trace.sites.size()) continue;
      if (is_of_another(call, number)) continue;
      if (trace.sites[call.site].name != what.site || call.thread >= trace.threads.size()) continue;
      if (what.threads == Intervention::Threads::named &&
          trace.threads[call.thread].name.text != what.thread.text)
        continue;
      if (first) {
        late.thread = trace.threads[call.thread].name.text;
        late.started_by = started_by(trace, call.thread);
        late.role = role_of(trace, call.thread);
        late.longest = Duration{};
        late.caller = caller_of(trace, call);
      }
      first = false;
      late.longest = std::max(late.longest, call.exit - call.enter);
    }
  }

  // The stack is that of the call before or after which it was late.
  std::optional<CodeSpot> caller_of(const Trace& trace, const TracedCall& late) const {
    if (!order_) return std::nullopt;
    const TracedCall* itself = nullptr;
    for (const TracedCall& call : trace.calls) {
      if (call.is_intervention || call.thread != late.thread || call.site != late.site) continue;
      if (itself != nullptr && itself->enter >= late.enter) break;
      itself = &call;
    }
    const Frame* frame = itself ? caller_past(trace, *itself, order_->wrappers) : nullptr;
    if (frame == nullptr) return std::nullopt;
    return CodeSpot{frame->file, frame->line, frame->function};
  }

  void find_failure() {
    if (order_ && order_->failure) {
      found_.failure = moment_of(*order_, order_->points[*order_->failure]);
    } else if (!repro_.failure.file.empty()) {
      found_.failure = Moment();
      found_.failure->what = Moment::What::failure;
    }
    if (!found_.failure) return;
    CodeSpot& place = found_.failure->place;
    if (place.file.empty())
      place = {repro_.failure.file, repro_.failure.line, repro_.failure.function};
  }

  std::optional<size_t> point_of(const TracedCall* Point::*side, const TracedCall* call) const {
    for (size_t i = 0; i < order_->points.size(); ++i)
      if (order_->points[i].kind == Point::Kind::begin && order_->points[i].*side == call) return i;
    return std::nullopt;
  }

  std::optional<PointPair> shown_pair() {
    if (!options_.shown || !passing_ || !failing_) return std::nullopt;
    const auto &passing = passing_->trace.calls, &failing = failing_->trace.calls;
    if (options_.shown->critical >= passing.size()) return std::nullopt;
    const auto first = point_of(&Point::passing, &passing[options_.shown->critical]);
    if (!first) return std::nullopt;
    if (!options_.shown->barrier) return gap_or_guess(*first);
    if (*options_.shown->barrier >= failing.size()) return std::nullopt;
    const auto second = point_of(&Point::failing, &failing[*options_.shown->barrier]);
    if (!second) return std::nullopt;
    if (!options_.shown->is_refuted())
      return PointPair{*first, *second, are_about_one_object(*order_, *first, *second)};
    const auto guess = flipped_pair(*order_, *first);
    return guess && guess->second != *second ? guess : std::nullopt;
  }

  // Two calls say more than one thread alone; a call and the check that fails after it do not. Who
  // fails itself when it is late is not seen half done by another one.
  std::optional<PointPair> gap_or_guess(size_t first) {
    const auto guess = flipped_pair(*order_, first);
    const bool is_call = guess && order_->points[guess->second].kind != Point::Kind::failure;
    if (!options_.shown->gap_from || is_call) return guess;
    const auto second =
        point_of(&Point::passing, &passing_->trace.calls[*options_.shown->gap_from]);
    const uint32_t thread = order_->points[first].thread;
    if (!second || order_->points[*second].thread != thread) return guess;
    if (order_->failing_thread() == thread) return guess;
    is_gap_ = true;
    return PointPair{first, *second, false};
  }

  void find_pair() {
    if (!order_) return;
    pair_ = shown_pair();
    FlippedPair pair;
    pair.is_shown = pair_ && options_.shown->decides();
    pair.is_gap = is_gap_;
    if (pair_ && options_.shown->barrier && !options_.shown->is_refuted()) {
      pair.kept = options_.shown->kept;
      pair.reversed = options_.shown->reversed;
    }
    const bool is_refuted = options_.shown && options_.shown->is_refuted();
    if (!pair_ && !is_refuted) pair_ = flipped_pair(*order_);
    if (!pair_) return;
    Point first = order_->points[pair_->first], second = order_->points[pair_->second];
    if (pair.is_shown) find_in_pool(first, second);
    pair.first = moment_of(*order_, first);
    pair.second = moment_of(*order_, second);
    if (const auto test = line_in_failing_function(*order_, second))
      if (*test != pair.second.place) pair.second.caller = test;
    pair.same_object = pair_->same_object;
    if (pair.second.passing_is_bound && pair.second.passing < pair.first.passing)
      pair.second.passing = std::nullopt;
    found_.pair = std::move(pair);
    if (!is_gap_) found_.wait = covering_wait(*order_, *pair_);
  }

  // Which thread of a pool comes somewhere differs from run to run: a point is described by the run
  // in which it was found, and comes in the other one when any of them does the same.
  void find_in_pool(Point& first, Point& second) const {
    const auto pool_of = [&](const Point& point) {
      return thread_class_of(order_->threads[point.thread].name);
    };
    if (!first.passing || !second.failing || pool_of(first) != pool_of(second)) return;
    first.failing = like(passing_->trace, *first.passing, failing_->trace);
    second.passing = nullptr;
    const TracedCall* usual = like(failing_->trace, *second.failing, passing_->trace);
    first.failing_at = time_of(first.failing);
    second.passing_from = second.passing_to = time_of(usual);
  }

  static std::optional<Duration> time_of(const TracedCall* call) {
    return call ? std::optional(call->enter) : std::nullopt;
  }

  static std::vector<std::pair<std::string, int>> way_to(const Trace& trace, uint32_t stack) {
    std::vector<std::pair<std::string, int>> way;
    if (stack >= trace.stacks.size()) return way;
    for (const TracedFrame& frame : trace.stacks[stack].frames)
      for (const Frame& source : frame.source)
        if (is_own(frame, source)) way.emplace_back(source.function, source.line);
    return way;
  }

  // The first call of a thread of the same pool at the same site that came there the same way.
  static const TracedCall* like(const Trace& trace, const TracedCall& call, const Trace& other) {
    const SiteName& site = trace.sites[call.site].name;
    const std::string pool = thread_class_of(trace.threads[call.thread].name.text);
    const auto way = way_to(trace, call.stack);
    for (const TracedCall& one : other.calls)
      if (!one.is_intervention && one.site < other.sites.size() &&
          one.thread < other.threads.size() && other.sites[one.site].name == site &&
          thread_class_of(other.threads[one.thread].name.text) == pool &&
          way_to(other, one.stack) == way)
        return &one;
    return nullptr;
  }

  // An order of calls that have no names helps nobody, and where the test's own calls are not seen,
  // the order of the others may be chance.
  std::string why_unseen() const {
    if (!failing_) return "";
    const Trace& trace = failing_->trace;
    const std::string function = unseen_failing_function(trace);
    if (!function.empty() && !has_lines_of(trace, repro_.failure.file))
      return fmt::format(
          "the test fails in {}, which has no debug information: what it calls and waits for is "
          "not seen",
          function);
    const auto is_nameless = [&](const CodeSpot& place) { return !has_name(trace, place); };
    const auto is_nameless_call = [&](const Moment& moment) {
      return moment.what != Moment::What::thread_end && is_nameless(moment.place);
    };
    const bool nameless_pair = found_.pair && (is_nameless_call(found_.pair->first) ||
                                               is_nameless_call(found_.pair->second));
    if (nameless_pair || std::ranges::any_of(found_.late, is_nameless, &Lateness::place))
      return "the calls that matter are in code without names: the program was stripped";
    return "";
  }

  Explanation without_cause() {
    found_.pair.reset();
    found_.wait.reset();
    found_.causes = {{RootCauseKind::unknown, 0, {found_.unseen}}};
    return std::move(found_);
  }

  void add_notes() {
    for (const auto& [run, name] :
         {std::pair(passing_, "passing"), std::pair(failing_, "failing")}) {
      if (!run) {
        found_.notes.push_back(fmt::format("there is no {} run to compare with", name));
        continue;
      }
      for (const Drops& drops : run->trace.drops)
        found_.notes.push_back(fmt::format("the {} run's trace lost {} {} for lack of room", name,
                                           drops.count, drops.what));
    }
    if (!order_) return;
    const bool any_late = std::ranges::any_of(
        order_->threads, [](const OrderedThread& thread) { return thread.late_from.has_value(); });
    if (!any_late && !repro_.plan.interventions.empty())
      found_.notes.push_back("no delay shows in the trace of the run under the plan");
    else if (!pair_ && may_race())
      found_.notes.push_back(
          "no two calls were seen in different orders: what races may be plain memory, which no "
          "call shows");
  }

  void tell_what_was_tried() {
    std::vector<std::string>& evidence = found_.causes.front().evidence;
    if (found_.experiments.empty()) evidence.push_back("no experiment could be made");
    for (const std::string& text : found_.experiments) evidence.push_back("tried: " + text);
  }

  bool may_race() const {
    return !order_->failure || others_are_active(*order_, order_->points[*order_->failure]);
  }

  const Repro& repro_;
  const ObservedRun* passing_;
  const ObservedRun* failing_;
  const ExplainOptions& options_;
  std::optional<CallOrder> order_;
  std::optional<PointPair> pair_;
  bool is_gap_ = false;
  Explanation found_;
};

}  // namespace

SuspectedCauses suspected_causes(const Explanation& found) {
  SuspectedCauses suspected;
  for (const RootCause& cause : found.causes) {
    suspected.async_wait = suspected.async_wait || cause.kind == RootCauseKind::async_wait;
    suspected.lost_wakeup = suspected.lost_wakeup || cause.kind == RootCauseKind::lost_wakeup;
    suspected.ordering = suspected.ordering || cause.kind == RootCauseKind::ordering;
  }
  suspected.wake_up = found.wake_up;
  suspected.lost_wakeup = suspected.lost_wakeup || found.wake_up.has_value();
  if (found.wait)
    suspected.wait = SuspectedWait{found.wait->site, found.wait->executable, found.wait->asked,
                                   found.wait->times, found.wait->is_sleep};
  return suspected;
}

Explanation explain(const Repro& repro, const ObservedRun* passing, const ObservedRun* failing,
                    const ExplainOptions& options) {
  if (failing == nullptr) return Explainer(repro, passing, failing, options)();
  ObservedRun named = *failing;
  name_failing_line(named);
  return Explainer(repro, passing, &named, options)();
}

}  // namespace unflake
