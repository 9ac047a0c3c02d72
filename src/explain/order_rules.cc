#include <fmt/format.h>

#include <algorithm>

#include "explain/call_order.h"
#include "explain/root_cause.h"
#include "protocol/agent_protocol.h"
#include "trace/happens_before.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake {
namespace {

// A test that waits for a result is the one that fails without it. What it starts another process
// for is its own doing.
bool fails_elsewhere(const Clues& clues) {
  if (!clues.order->failure) return false;
  const Point &failure = clues.order->points[*clues.order->failure], &second = *clues.second();
  return failure.thread != second.thread &&
         process_of(*clues.order, failure) == process_of(*clues.order, second);
}

}  // namespace

namespace {

// Clock reads and timed calls of the failing thread itself, from the delay to the failure.
int own_time_calls(const CallOrder& order, const Point& failure) {
  const auto& from = order.threads[failure.thread].late_from;
  return static_cast<int>(std::ranges::count_if(order.points, [&](const Point& point) {
    if (point.thread != failure.thread || !point.failing || point.kind != Point::Kind::begin)
      return false;
    const bool timed = order.traits_of(point) & protocol::api_timed && point.failing->value >= 0;
    return (timed || order.group_traits_of(point) & protocol::group_clocks) && point.failing_at &&
           *point.failing_at <= *failure.failing_at && from && point.failing->exit >= *from;
  }));
}

// A thread that is late itself, and then serves a time-out of its own before what it waits for: it
// does something else than when the test passes. One that measures a time does not.
bool is_overtaken_by_own_time(const Clues& clues) {
  if (!clues.order || !clues.order->failure) return false;
  const CallOrder& order = *clues.order;
  const Point& failure = order.points[*order.failure];
  const OrderedThread& thread = order.threads[failure.thread];
  if (!thread.late_from || thread.passing == no_index || own_time_calls(order, failure) == 0)
    return false;
  if (clues.other_way) return true;
  const auto diverged = divergence(*order.passing, thread.passing, *order.failing, thread.failing);
  return diverged && *diverged < *failure.failing_at;
}

}  // namespace

RootCauseEvidence async_wait(const Clues& clues) {
  const auto& wait = clues.found->wait;
  if (!wait && is_overtaken_by_own_time(clues))
    return {
        0.8,
        {fmt::format("the thread that was late is the one that fails: a time of its own ran out "
                     "before it came to what it waits for, and it went another way{}",
                     clues.other_way ? ", to " + short_place(*clues.other_way) : "")}};
  if (!wait) return {};
  const std::string place = short_place(wait->moment.place);
  const auto& critical = clues.found->pair->first;
  if (!wait->is_sleep && wait->ran_out_failing && !wait->ran_out_passing)
    return {0.92,
            {fmt::format("the timed wait at {} ran out in the failing run and did not in the "
                         "passing one",
                         place)}};
  const std::string kind = wait->is_sleep ? "sleep" : "timed wait";
  const Point& second = *clues.second();
  const bool covers = wait->needed && wait->passing && wait->moment.passing && second.passing_to &&
                      *wait->moment.passing + *wait->needed <= *second.passing_to;
  if (covers)
    return {
        fails_elsewhere(clues) ? 0.6 : 0.9,
        {fmt::format("nothing but the {} at {} keeps {} after {}", kind, place,
                     short_place(clues.found->pair->second.place),
                     critical.what == Moment::What::thread_end ? "the end of " + who_is(critical)
                                                               : short_place(critical.place))}};
  return {fails_elsewhere(clues) ? 0.5 : 0.65,
          {fmt::format("{} waits at {} for a fixed time before it goes on", who_is(wait->moment),
                       place)}};
}

namespace {

// A delay at a call would have been found first.
std::optional<CodeSpot> delay_at_line(const Clues& clues) {
  if (clues.is_place_chosen) return std::nullopt;
  for (const Intervention& one : clues.repro->plan.interventions) {
    if (one.action != Intervention::Action::delay || !one.site.api.empty()) continue;
    const auto& late = clues.found->late;
    const auto found = std::ranges::find(late, to_string(one.site), &Lateness::site);
    if (found != late.end() && found->place.line > 0) return found->place;
    return CodeSpot{one.site.file, one.site.line, one.site.function};
  }
  return std::nullopt;
}

}  // namespace

RootCauseEvidence ordering(const Clues& clues) {
  if (clues.pair && CauseFacts::holds(clues.found->facts.late_as_a_whole))
    return {0.9,
            {fmt::format("{} may be late before all that it does, but not in the middle of it: "
                         "another thread sees what is half done",
                         clues.order->who(*clues.first()))}};
  if (const auto line = delay_at_line(clues))
    return {0.91,
            {fmt::format("it fails when a thread is late at {}, between two calls: another one "
                         "sees, in memory that no call protects, what is half done",
                         short_place(*line))}};
  if (!clues.pair) return {};
  if (clues.found->pair->is_gap)
    return {
        0.7,
        {fmt::format("{} may be late before {} and after {}, but not in between: another "
                     "thread sees what is half done",
                     clues.order->who(*clues.first()), short_place(clues.found->pair->second.place),
                     short_place(clues.found->pair->first.place))}};
  if (clues.found->wait && fails_elsewhere(clues))
    return {0.68,
            {"the order of two threads decides; the one that waits a fixed time goes by a time of "
             "its own, and is not the one that fails"}};
  if (clues.found->wait) return {0.4, {"the order of two threads decides"}};
  if (clues.pair->same_object)
    return {0.7,
            {"two threads use the same object, and nothing makes one of them come first: no wait "
             "stands between them"}};
  return {0.6, {"the order of two threads decides, and no wait stands between them"}};
}

namespace {

bool is_signal_for(const Trace& trace, const TracedCall& wait, const TracedCall& signal) {
  if (signal.site >= trace.sites.size() || wait.site >= trace.sites.size()) return false;
  const TracedSite &one = trace.sites[wait.site], &other = trace.sites[signal.site];
  return !signal.is_intervention && signal.thread != wait.thread && one.group == other.group &&
         wait.object == signal.object && can_wake(other);
}

bool forgets_signals(const CallOrder& order, const Point& point) {
  return order.group_traits_of(point) & protocol::group_forgets;
}

// A wait that began after the only signal for it, and that no other signal ended.
const TracedCall* missed_signal(const Trace& trace, const TracedCall& wait) {
  const TracedCall* missed = nullptr;
  for (const TracedCall& call : trace.calls) {
    if (!is_signal_for(trace, wait, call)) continue;
    if (call.enter >= wait.enter && call.enter <= wait.exit) return nullptr;
    if (call.enter < wait.enter && (!missed || call.enter > missed->enter)) missed = &call;
  }
  return missed;
}

}  // namespace

namespace {

// Those of the standard library's waits that take a predicate look before they wait and after every
// wake-up, and are templates in the program.
bool has_predicate(const Trace& trace, const TracedCall& wait) {
  if (wait.stack >= trace.stacks.size()) return false;
  for (const TracedFrame& frame : trace.stacks[wait.stack].frames)
    for (const Frame& source : frame.source)
      if (source.function.find("condition_variable") != std::string::npos &&
          source.function.find("{lambda") != std::string::npos)
        return true;
  return false;
}

// A wait of the library without one; whether a handwritten loop looks cannot be seen.
bool waits_blindly(const Trace& trace, const TracedCall& wait) {
  if (wait.stack >= trace.stacks.size() || has_predicate(trace, wait)) return false;
  return std::ranges::any_of(trace.stacks[wait.stack].frames, [&](const TracedFrame& frame) {
    const bool is_library = frame.image < trace.images.size() &&
                            trace.images[frame.image].path.find("libstdc++") != std::string::npos;
    return is_library || std::ranges::any_of(frame.source, [](const Frame& source) {
             return source.function.find("condition_variable") != std::string::npos;
           });
  });
}

}  // namespace

// The signal came when nobody waited. With a predicate that does no harm, so it may be no more than
// a hint.
bool signal_overtook_wait(const Clues& clues) {
  if (!clues.pair || !clues.pair->same_object) return false;
  return clues.first()->kind == Point::Kind::begin &&
         forgets_signals(*clues.order, *clues.first()) &&
         clues.order->traits_of(*clues.first()) & protocol::api_wait &&
         clues.order->traits_of(*clues.second()) & protocol::api_wakes;
}

namespace {

// The calls of a thread in both runs are the same up to here.
bool comes_the_same_way(const CallOrder& order, const Point& point) {
  const auto sites_before = [&](const Trace& trace, uint32_t thread, const TracedCall& last) {
    std::vector<std::string> sites;
    for (const TracedCall& call : trace.calls)
      if (call.thread == thread && !call.is_intervention && call.enter < last.enter &&
          call.site < trace.sites.size())
        sites.push_back(to_string(trace.sites[call.site].name));
    return sites;
  };
  const OrderedThread& thread = order.threads[point.thread];
  return sites_before(*order.passing, thread.passing, *point.passing) ==
         sites_before(*order.failing, thread.failing, *point.failing);
}

// Whoever looks for what has happened does not wait for it again. One that comes by the same calls
// to a wait whose wake-up is over, and waits, has not looked.
const TracedCall* overtaking_signal(const CallOrder& order, const Point& point) {
  if (point.kind != Point::Kind::begin || !point.passing || !point.failing) return nullptr;
  if (!forgets_signals(order, point) || !(order.traits_of(point) & protocol::api_wait))
    return nullptr;
  const auto came = [](const Trace& trace, const TracedCall& wait, auto when) {
    const auto found = std::ranges::find_if(trace.calls, [&](const TracedCall& call) {
      return is_signal_for(trace, wait, call) && when(call);
    });
    return found == trace.calls.end() ? nullptr : &*found;
  };
  const TracedCall &before = *point.passing, &after = *point.failing;
  if (has_predicate(*order.passing, before)) return nullptr;
  const TracedCall* woke = came(*order.passing, before, [&](const TracedCall& call) {
    return call.enter >= before.enter && call.enter <= before.exit;
  });
  if (woke == nullptr) return nullptr;
  const std::string& by = to_string(order.passing->sites[woke->site].name);
  const TracedCall* missed = came(*order.failing, after, [&](const TracedCall& call) {
    return call.enter < after.enter && to_string(order.failing->sites[call.site].name) == by;
  });
  return missed != nullptr && comes_the_same_way(order, point) ? missed : nullptr;
}

}  // namespace

namespace {

// Of a wait that ran out or never ended, and did not when the test passed.
const TracedCall* signal_that_was_missed(const CallOrder& order, const Point& point) {
  if (point.kind != Point::Kind::begin || !point.failing) return nullptr;
  const TracedCall& wait = *point.failing;
  if (!forgets_signals(order, point) || !(wait.timed_out || wait.unfinished) ||
      !(order.traits_of(point) & protocol::api_wait))
    return nullptr;
  if (point.passing && (point.passing->timed_out || point.passing->unfinished)) return nullptr;
  return missed_signal(*order.failing, wait);
}

// Workers wait for work at the end of every test: where the test did not hang, a wait that nobody
// ended is a sign of something only if an experiment says so.
bool may_be_idle(const Clues& clues, const TracedCall& wait) {
  const Count& shown = clues.found->facts.waiting_first;
  const bool hung = clues.failing->outcome.kind == OutcomeKind::timeout;
  return wait.unfinished && !hung && (shown.runs == 0 || shown.hits < shown.runs);
}

// What a thread was given by its reads.
int64_t bytes_read(const Trace& trace, uint32_t thread) {
  int64_t bytes = 0;
  for (const TracedCall& call : trace.calls) {
    if (call.thread != thread || call.is_intervention || call.site >= trace.sites.size()) continue;
    const TracedSite& site = trace.sites[call.site];
    const bool reads = site.group == "file" || site.group == "socket";
    if (reads && !can_wake(site) && call.result > 0) bytes += call.result;
  }
  return bytes;
}

bool ran_out(const TracedCall* call) {
  return call != nullptr && (call->timed_out || call->unfinished);
}

// What was sent first counts only once where somebody waits for changes: the wait for the second
// one runs out although there is more to read.
std::string merged_wake_ups(const Clues& clues) {
  if (!clues.pair || !clues.found->pair->is_shown || !clues.order) return "";
  const CallOrder& order = *clues.order;
  const Point &first = *clues.first(), &second = *clues.second();
  const TracedSite* site = order.site_of(first);
  if (site == nullptr || !(order.group_traits_of(first) & protocol::group_polls) ||
      !(order.traits_of(first) & protocol::api_wait) ||
      !(order.traits_of(second) & protocol::api_wakes))
    return "";
  const OrderedThread& thread = order.threads[first.thread];
  if (thread.passing == no_index || thread.failing == no_index) return "";
  if (bytes_read(*order.failing, thread.failing) >= bytes_read(*order.passing, thread.passing))
    return "";
  for (const Point& point : order.points)
    if (point.thread == first.thread && point.kind == Point::Kind::begin &&
        order.site_of(point)->name == site->name && ran_out(point.failing) &&
        !ran_out(point.passing) && point.failing->enter >= *second.failing_at)
      return fmt::format(
          "{} waits in {} at {} for what is already there: it came before the wait "
          "began, and nothing comes again",
          order.who(first), site->name.api, short_place(moment_of(order, point).place));
  return "";
}

}  // namespace

RootCauseEvidence lost_wakeup(const Clues& clues) {
  if (!clues.order) return {};
  if (const std::string text = merged_wake_ups(clues); !text.empty()) return {0.92, {text}};
  for (const Point& point : clues.order->points) {
    const TracedCall* missed = signal_that_was_missed(*clues.order, point);
    if (!missed) continue;
    const TracedCall& wait = *point.failing;
    if (may_be_idle(clues, wait)) continue;
    const std::string place = short_place(moment_of(*clues.order, point).place);
    return {point.passing ? 0.95 : 0.9,
            {fmt::format("the signal came {} before {} began to wait at {}, and nobody signalled "
                         "again",
                         format_duration(wait.enter - missed->enter),
                         who_is(clues.failing->trace, wait.thread), place),
             wait.unfinished ? "the wait never ended" : "the wait ended at its time-out"}};
  }
  for (const Point& point : clues.order->points)
    if (const TracedCall* signal = overtaking_signal(*clues.order, point))
      return {0.93,
              {fmt::format("the signal came {} before {} began to wait for it at {}, which it does "
                           "without looking whether it was there",
                           format_duration(point.failing->enter - signal->enter),
                           who_is(clues.failing->trace, point.failing->thread),
                           short_place(moment_of(*clues.order, point).place))}};
  const bool is_shown = clues.pair && clues.found->pair->is_shown;
  const TracedCall* wait = clues.pair ? clues.first()->failing : nullptr;
  if (signal_overtook_wait(clues) && (is_shown || !wait || !may_be_idle(clues, *wait)))
    return {waits_blindly(*clues.order->passing, *clues.first()->passing) ? 0.85 : 0.62,
            {fmt::format("the signal at {} came before anybody waited at {}",
                         short_place(clues.found->pair->second.place),
                         short_place(clues.found->pair->first.place))}};
  return {};
}

namespace {

bool is_between_processes(const CallOrder& order, const Point& point) {
  return order.group_traits_of(point) & protocol::group_crosses;
}

// A port that is taken, or that nobody listens on. A connection that only begins is not refused.
bool is_refused_when_failing(const CallOrder& order, const Point& point) {
  if (!(order.traits_of(point) & protocol::api_claims)) return false;
  return point.kind == Point::Kind::begin && point.failing && point.failing->result < 0 &&
         point.passing && point.passing->result == 0;
}

const Point* refused_when_failing(const CallOrder& order) {
  const auto found = std::ranges::find_if(
      order.points, [&](const Point& point) { return is_refused_when_failing(order, point); });
  return found == order.points.end() ? nullptr : &*found;
}

std::string refusal_words(const CallOrder& order, const Point& refused) {
  return fmt::format("{} at {} was refused in the failing run only",
                     order.site_of(refused)->name.api,
                     short_place(moment_of(order, refused).place));
}

}  // namespace

std::optional<MissedWakeUp> missed_wake_up(const CallOrder& order) {
  const auto number = [&](const TracedCall* call) {
    return static_cast<size_t>(call - order.failing->calls.data());
  };
  for (const Point& point : order.points)
    if (const TracedCall* signal = signal_that_was_missed(order, point))
      return MissedWakeUp{number(point.failing), number(signal)};
  for (const Point& point : order.points)
    if (const TracedCall* signal = overtaking_signal(order, point))
      return MissedWakeUp{number(point.failing), number(signal)};
  return std::nullopt;
}

RootCauseEvidence process_handover(const Clues& clues) {
  if (!clues.pair) return {};
  const Point &first = *clues.first(), &second = *clues.second();
  const double covered = clues.found->wait ? 0.1 : 0;
  if (process_of(*clues.order, first) != process_of(*clues.order, second))
    return {0.94, {"the two that must keep an order are in different processes"}};
  const Point* refused = refused_when_failing(*clues.order);
  if (refused && process_of(*clues.order, first) != process_of(*clues.order, *refused))
    return {0.94, {refusal_words(*clues.order, *refused) + ", and another process comes too late"}};
  if (is_between_processes(*clues.order, first) && is_between_processes(*clues.order, second))
    return {0.72 - covered, {"the two hand over through sockets, pipes or files"}};
  return {};
}

bool others_are_active(const CallOrder& order, const Point& failure) {
  return std::ranges::any_of(order.points, [&](const Point& point) {
    return point.thread != failure.thread && point.failing && point.failing_at &&
           *point.failing_at <= *failure.failing_at;
  });
}

namespace {

// A thread that waited for the late one to its end, and then looked how long that took.
RootCauseEvidence measured_another(const CallOrder& order, const Point& failure) {
  std::optional<Duration> from, to;
  for (const TracedCall& call : order.with_plan().calls) {
    if (!call.is_intervention) continue;
    from = std::min(from.value_or(call.enter), call.enter);
    to = std::max(to.value_or(call.exit), call.exit);
  }
  if (!from || order.plan_is_passing) return {};
  bool before = false, after = false;
  for (const Point& point : order.points) {
    if (point.thread != failure.thread || !point.failing_at ||
        !(order.group_traits_of(point) & protocol::group_clocks))
      continue;
    before = before || *point.failing_at < *from;
    after = after || (*point.failing_at > *to && *point.failing_at <= *failure.failing_at);
  }
  if (!before || !after) return {};
  return {0.75,
          {"the failing thread looked at the clock before the delay, waited until it was over, and "
           "looked again"}};
}

bool is_on_stack_of_failure(const Trace& trace, const std::string& function) {
  const TracedFailure* failure = main_failure(trace);
  if (failure == nullptr) return false;
  return std::ranges::any_of(failure->stack.frames, [&](const TracedFrame& frame) {
    return std::ranges::count(frame.source, function, &Frame::function) > 0;
  });
}

// Being late matters from one look at the clock to another, and both are made where the check is.
// Code that goes another way because of such a look serves a time-out of its own.
RootCauseEvidence measured_itself(const Clues& clues, const Point& failure) {
  if (!clues.shown || !clues.shown->gap_from || clues.shown->barrier) return {};
  const Trace& passing = clues.passing->trace;
  std::vector<std::string> places;
  for (const size_t number : {*clues.shown->gap_from, clues.shown->critical}) {
    if (number >= passing.calls.size()) return {};
    const TracedCall& call = passing.calls[number];
    const SiteName& site = passing.sites[call.site].name;
    const bool is_look = passing.sites[call.site].group == "clock" &&
                         call.thread == clues.order->threads[failure.thread].passing;
    if (!is_look || base_name(site.file) != base_name(clues.repro->failure.file)) return {};
    if (clues.other_way && !is_on_stack_of_failure(clues.failing->trace, site.function)) return {};
    places.push_back(fmt::format("{}:{}", base_name(site.file), site.line));
  }
  return {0.95,
          {fmt::format("it fails when the thread that fails is late between its looks at the clock "
                       "at {} and {}, and passes when it is late before or after them",
                       places.front(), places.back())}};
}

}  // namespace

RootCauseEvidence exact_timing(const Clues& clues) {
  if (!clues.order || !clues.order->failure || clues.crashed()) return {};
  const Point& failure = clues.order->points[*clues.order->failure];
  if (RootCauseEvidence found = measured_itself(clues, failure); found.score > 0) return found;
  if (!clues.order->threads[failure.thread].late_from)
    return measured_another(*clues.order, failure);
  const int calls = own_time_calls(*clues.order, failure);
  if (calls == 0 || is_overtaken_by_own_time(clues)) return {};
  RootCauseEvidence found{
      0.85,
      {fmt::format("the thread that was late is the one that fails, and it looked at the "
                   "clock or gave a time {} in between",
                   calls == 1 ? "once" : fmt::format("{} times", calls))}};
  if (!others_are_active(*clues.order, failure))
    found.texts.push_back("no other thread was doing anything");
  else
    found.score = clues.pair ? 0.5 : 0.75;
  return found;
}

namespace {

// A thread did not get a lock in time, because others kept it.
RootCauseEvidence starved_of_lock(const CallOrder& order) {
  for (const Point& point : order.points) {
    if (point.kind != Point::Kind::begin || !(order.group_traits_of(point) & protocol::group_locks))
      continue;
    if (!point.failing || !point.failing->timed_out) continue;
    if (point.passing && point.passing->timed_out) continue;
    return {0.93,
            {fmt::format("{} waited {} for the lock at {} and did not get it", order.who(point),
                         format_duration(point.failing->exit - point.failing->enter),
                         short_place(moment_of(order, point).place))}};
  }
  return {};
}

}  // namespace

RootCauseEvidence starvation(const Clues& clues) {
  const Conditions& scarce = clues.repro->conditions;
  if (scarce == Conditions{})
    return clues.order ? starved_of_lock(*clues.order) : RootCauseEvidence{};
  const auto parts = scarcity_words(scarce, &ConditionField::as_a_clause);
  const bool alone = clues.repro->plan.interventions.empty();
  return {alone ? 0.9 : 0.55, {"it fails when " + join(parts, " and ")}};
}

namespace {

std::string scarce_thing_in(std::string_view text) {
  for (const char* words : {"Address already in use", "EADDRINUSE", "Too many open files", "EMFILE",
                            "No space left on device", "Cannot allocate memory"})
    if (text.find(words) != std::string_view::npos) return words;
  return "";
}

std::string scarce_thing(const Clues& clues) {
  std::vector<std::string> texts{clues.repro->failure.message};
  if (clues.failing)
    for (const TracedFailure& failure : clues.failing->trace.failures)
      texts.push_back(failure.message);
  for (const std::string& text : texts)
    if (std::string found = scarce_thing_in(text); !found.empty()) return found;
  return "";
}

// A file that somebody reads to its end while it is still being written.
std::string read_too_early(const Clues& clues) {
  if (!clues.pair || !CauseFacts::holds(clues.found->facts.late_as_a_whole)) return "";
  const CallOrder& order = *clues.order;
  const Point &first = *clues.first(), &second = *clues.second();
  const TracedSite *writes = order.site_of(first), *reads = order.site_of(second);
  if (!writes || !reads || writes->group != "file" || reads->group != "file") return "";
  if (!can_wake(*writes) || can_wake(*reads) || !second.failing) return "";
  const Trace& trace = *order.failing;
  const bool to_its_end = std::ranges::any_of(trace.calls, [&](const TracedCall& call) {
    return call.thread == second.failing->thread && call.site < trace.sites.size() &&
           trace.sites[call.site].name.api == reads->name.api && call.result == 0 &&
           call.object == second.failing->object && call.enter >= second.failing->enter &&
           call.exit <= order.decided_by();
  });
  if (!to_its_end) return "";
  return fmt::format(
      "what is read to its end at {} is still being written at {}: it is there "
      "before it is complete",
      short_place(clues.found->pair->second.place), short_place(clues.found->pair->first.place));
}

}  // namespace

RootCauseEvidence resource(const Clues& clues) {
  if (const std::string text = read_too_early(clues); !text.empty()) return {0.93, {text}};
  if (const std::string found = scarce_thing(clues); !found.empty())
    return {0.92, {fmt::format("the failure says \"{}\"", found)}};
  if (!clues.order) return {};
  if (const Point* refused = refused_when_failing(*clues.order))
    return {0.92, {refusal_words(*clues.order, *refused)}};
  return {};
}

}  // namespace unflake
