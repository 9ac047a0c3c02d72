#include "trace/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/agent_protocol.h"
#include "trace/lock_graph.h"
#include "trace/moments.h"
#include "util/text.h"

namespace unflake {
namespace {

// What a rule found; a score of 0 means that it does not apply.
struct Evidence {
  double score = 0;
  std::vector<std::string> texts;
};

const Point* first_of(const Clues& clues) {
  return clues.pair ? &clues.order->points[clues.pair->first] : nullptr;
}

const Point* second_of(const Clues& clues) {
  return clues.pair ? &clues.order->points[clues.pair->second] : nullptr;
}

std::string name_of(const Trace& trace, uint32_t thread) {
  return thread < trace.threads.size() ? trace.threads[thread].name.text : "a thread";
}

bool failed_like(const Clues& clues, OutcomeKind kind) {
  return (clues.failing ? clues.failing->outcome.kind : clues.repro->outcome) == kind;
}

bool crashed(const Clues& clues) {
  return failed_like(clues, OutcomeKind::crash) || is_sanitizer(clues.repro->failure.kind);
}

Evidence async_wait(const Clues& clues) {
  const auto& wait = clues.found->wait;
  if (!wait) return {};
  const std::string place = short_place(wait->moment.place);
  const auto& critical = clues.found->pair->first;
  if (!wait->is_sleep && wait->ran_out_failing && !wait->ran_out_passing)
    return {0.92,
            {fmt::format("the timed wait at {} ran out in the failing run and did not in the "
                         "passing one",
                         place)}};
  const std::string kind = wait->is_sleep ? "sleep" : "timed wait";
  const Point& second = *second_of(clues);
  const bool covers =
      wait->needed && wait->passing && *wait->moment.passing + *wait->needed <= *second.passing_to;
  if (covers)
    return {
        0.9,
        {fmt::format("nothing but the {} at {} keeps {} behind {}", kind, place,
                     short_place(clues.found->pair->second.place), short_place(critical.place))}};
  return {0.65,
          {fmt::format("{} waits at {} for a fixed time before it goes on", wait->moment.thread,
                       place)}};
}

Evidence ordering(const Clues& clues) {
  if (!clues.pair) return {};
  const auto& failure = clues.order->failure;
  const bool fails_elsewhere =
      failure && clues.order->points[*failure].thread != second_of(clues)->thread;
  if (clues.found->wait && fails_elsewhere)
    return {
        0.68,
        {"the order of two threads decides, each goes by its own time, and who checks the result "
         "is a third"}};
  if (clues.found->wait) return {0.4, {"the order of two threads decides"}};
  if (clues.pair->same_object)
    return {0.7,
            {"two threads use the same object, and nothing makes one of them come first: no wait "
             "stands between them"}};
  return {0.6, {"the order of two threads decides, and no wait stands between them"}};
}

bool is_signal_for(const Trace& trace, const TracedEvent& wait, const TracedEvent& signal) {
  if (signal.site >= trace.sites.size() || wait.site >= trace.sites.size()) return false;
  const TracedSite &one = trace.sites[wait.site], &other = trace.sites[signal.site];
  return !signal.is_intervention && signal.thread != wait.thread && one.group == other.group &&
         wait.object == signal.object && traits_of_api(other.name.api) & protocol::api_wakes;
}

bool forgets_signals(std::string_view group) {
  return group == "condition" || group == "futex";
}

// A wait that began after the only signal for it, and that no other signal ended.
const TracedEvent* missed_signal(const Trace& trace, const TracedEvent& wait) {
  const TracedEvent* missed = nullptr;
  for (const TracedEvent& event : trace.events) {
    if (!is_signal_for(trace, wait, event)) continue;
    if (event.enter >= wait.enter && event.enter <= wait.exit) return nullptr;
    if (event.enter < wait.enter && (!missed || event.enter > missed->enter)) missed = &event;
  }
  return missed;
}

Evidence lost_wakeup(const Clues& clues) {
  if (!clues.order) return {};
  for (const Point& point : clues.order->points) {
    if (point.kind != Point::Kind::begin || !point.failing) continue;
    const TracedEvent& wait = *point.failing;
    if (!forgets_signals(clues.order->group_of(point)) || !(wait.timed_out || wait.unfinished) ||
        !(clues.order->traits_of(point) & protocol::api_wait))
      continue;
    if (point.passing && (point.passing->timed_out || point.passing->unfinished)) continue;
    const TracedEvent* missed = missed_signal(clues.failing->trace, wait);
    if (!missed) continue;
    const std::string place = short_place(moment_of(*clues.order, point).place);
    return {point.passing ? 0.95 : 0.9,
            {fmt::format("the signal came {} before {} began to wait at {}, and nobody signalled "
                         "again",
                         format_duration(wait.enter - missed->enter),
                         name_of(clues.failing->trace, wait.thread), place),
             wait.unfinished ? "the wait never ended" : "the wait ended at its time-out"}};
  }
  return {};
}

// Clock reads and timed calls of the failing thread itself, from the delay to the failure.
int own_time_calls(const EventOrder& order, const Point& failure) {
  const auto& from = order.threads[failure.thread].late_from;
  return static_cast<int>(std::ranges::count_if(order.points, [&](const Point& point) {
    if (point.thread != failure.thread || !point.failing || point.kind != Point::Kind::begin)
      return false;
    const bool timed = order.traits_of(point) & protocol::api_timed && point.failing->value >= 0;
    return (timed || order.group_of(point) == "clock") &&
           *point.failing_at <= *failure.failing_at && from && point.failing->exit >= *from;
  }));
}

bool others_are_active(const EventOrder& order, const Point& failure) {
  return std::ranges::any_of(order.points, [&](const Point& point) {
    return point.thread != failure.thread && point.failing &&
           *point.failing_at <= *failure.failing_at;
  });
}

Evidence exact_timing(const Clues& clues) {
  if (!clues.order || !clues.order->failure) return {};
  const Point& failure = clues.order->points[*clues.order->failure];
  if (!clues.order->threads[failure.thread].late_from || crashed(clues)) return {};
  const int calls = own_time_calls(*clues.order, failure);
  if (calls == 0) return {};
  Evidence found{
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

// The destructors of the standard library are mostly those of locks and pointers.
bool is_clean_up(std::string_view function) {
  return (function.find("::~") != std::string_view::npos && !function.starts_with("std::")) ||
         function.find("__run_exit_handlers") != std::string_view::npos ||
         function.find("__cxa_finalize") != std::string_view::npos;
}

const Frame* clean_up_frame(const TracedStack& stack) {
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (is_clean_up(source.function)) return &source;
  return nullptr;
}

const Frame* clean_up_of(const Trace& trace, const TracedEvent* event) {
  if (!event || event->stack >= trace.stacks.size()) return nullptr;
  return clean_up_frame(trace.stacks[event->stack]);
}

// Whoever was overtaken, or did the overtaking, in a destructor.
std::string pair_in_clean_up(const Clues& clues) {
  const Point* second = second_of(clues);
  if (!second) return "";
  const Frame* frame = clean_up_of(clues.failing->trace, second->failing);
  if (!frame) return "";
  return fmt::format("{} came there in {}", clues.order->threads[second->thread].name,
                     frame->function);
}

std::string outlived_main(const Clues& clues) {
  const TracedFailure* failure = main_failure(clues.failing->trace);
  if (!failure || failure->thread >= clues.failing->trace.threads.size()) return "";
  const auto& threads = clues.failing->trace.threads;
  if (threads[failure->thread].parent == no_index) return "";
  for (const TracedEvent& event : clues.failing->trace.events)
    if (event.thread < threads.size() && threads[event.thread].parent == no_index &&
        (event.exit > failure->at || event.unfinished))
      return "";
  return fmt::format("{} was still at work when main had made its last call",
                     threads[failure->thread].name.text);
}

Evidence teardown_race(const Clues& clues) {
  if (!clues.failing) return {};
  std::vector<std::string> texts;
  const TracedFailure* failure = main_failure(clues.failing->trace);
  if (const Frame* frame = failure ? clean_up_frame(failure->stack) : nullptr)
    texts.push_back("it failed in " + frame->function);
  for (const std::string& text : {pair_in_clean_up(clues), outlived_main(clues)})
    if (!text.empty()) texts.push_back(text);
  if (!crashed(clues)) return texts.empty() ? Evidence{} : Evidence{0.5, texts};
  const std::string message = clues.repro->failure.message;
  if (message.find("use-after-free") != std::string::npos ||
      message.find("use-after-scope") != std::string::npos)
    texts.push_back("it used what was already destroyed");
  if (!texts.empty()) return {0.88, texts};
  if (first_of(clues) && clues.order->failure &&
      clues.order->points[*clues.order->failure].thread == first_of(clues)->thread)
    return {0.62, {"the thread that was late crashed after another one had overtaken it"}};
  return {};
}

std::string cycle_text(const Trace& trace, const StuckLocks& stuck) {
  std::vector<std::string> parts;
  for (const size_t number : stuck.cycle) {
    const StuckLocks::Wait& wait = stuck.waits[number];
    const std::string place = wait.site < trace.sites.size()
                                  ? short_place(place_of(trace, trace.sites[wait.site].name))
                                  : "?";
    parts.push_back(fmt::format("{} waits at {} for a lock of {}", name_of(trace, wait.thread),
                                place, name_of(trace, wait.holder)));
  }
  return join(parts, "; ");
}

int threads_in_locks(const std::vector<ThreadAtTimeout>& threads) {
  const auto is_in_lock = [](const ThreadAtTimeout& thread) {
    const size_t few = std::min<size_t>(4, thread.frames.size());
    return std::any_of(thread.frames.begin(), thread.frames.begin() + static_cast<ptrdiff_t>(few),
                       [](const auto& frame) {
                         return frame.function.find("mutex_lock") != std::string::npos ||
                                frame.function.find("lock_wait") != std::string::npos ||
                                frame.function.find("rwlock_") != std::string::npos;
                       });
  };
  return static_cast<int>(std::ranges::count_if(threads, is_in_lock));
}

bool is_stuck_elsewhere(const Trace& trace, uint32_t thread) {
  return std::ranges::any_of(trace.events, [&](const TracedEvent& event) {
    return event.thread == thread && event.unfinished && !event.is_intervention &&
           event.site < trace.sites.size() && trace.sites[event.site].group != "lock";
  });
}

Evidence deadlock(const Clues& clues) {
  if (!clues.failing || !failed_like(clues, OutcomeKind::timeout)) return {};
  const Trace& trace = clues.failing->trace;
  const StuckLocks stuck = stuck_locks(trace);
  if (!stuck.cycle.empty()) return {0.97, {cycle_text(trace, stuck)}};
  for (const StuckLocks::Wait& wait : stuck.waits)
    if (is_stuck_elsewhere(trace, wait.holder))
      return {0.85,
              {fmt::format("{} waits for a lock of {}, which waits for something else and never "
                           "lets it go",
                           name_of(trace, wait.thread), name_of(trace, wait.holder))}};
  const int in_locks = std::max(static_cast<int>(stuck.waits.size()),
                                threads_in_locks(clues.failing->thread_stacks));
  if (in_locks == 0) return {};
  return {in_locks > 1 ? 0.65 : 0.35,
          {fmt::format("{} {} waiting for a lock when time ran out", in_locks,
                       in_locks == 1 ? "thread was" : "threads were")}};
}

Evidence starvation(const Clues& clues) {
  const Conditions& scarce = clues.repro->conditions;
  if (scarce == Conditions{}) return {};
  std::vector<std::string> parts;
  if (scarce.one_core) parts.push_back("all threads share one core");
  if (scarce.cpu_share < 1)
    parts.push_back(fmt::format("it may run for {:.0f} % of the time", scarce.cpu_share * 100));
  if (scarce.competitors > 0)
    parts.push_back(fmt::format("{} busy processes compete with it", scarce.competitors));
  const bool alone = clues.repro->plan.interventions.empty();
  return {alone ? 0.9 : 0.55, {"it fails when " + join(parts, " and ")}};
}

bool is_between_processes(std::string_view group) {
  return group == "socket" || group == "file" || group == "queue" || group == "process" ||
         group == "poll";
}

uint32_t process_of(const EventOrder& order, const Point& point) {
  const OrderedThread& thread = order.threads[point.thread];
  const Trace& trace = thread.failing != no_index ? *order.failing : *order.passing;
  const uint32_t number = thread.failing != no_index ? thread.failing : thread.passing;
  return number < trace.threads.size() ? trace.threads[number].process : no_index;
}

Evidence process_handover(const Clues& clues) {
  if (!clues.pair) return {};
  const Point &first = *first_of(clues), &second = *second_of(clues);
  const double covered = clues.found->wait ? 0.1 : 0;
  if (process_of(*clues.order, first) != process_of(*clues.order, second))
    return {0.88 - covered, {"the two that must keep an order are in different processes"}};
  if (is_between_processes(clues.order->group_of(first)) &&
      is_between_processes(clues.order->group_of(second)))
    return {0.72 - covered, {"the two hand over through sockets, pipes or files"}};
  return {};
}

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

Evidence resource(const Clues& clues) {
  if (const std::string found = scarce_thing(clues); !found.empty())
    return {0.86, {fmt::format("the failure says \"{}\"", found)}};
  if (!clues.order) return {};
  for (const Point& point : clues.order->points) {
    const TracedSite* site = clues.order->site_of(point);
    if (site && site->name.api == "bind" && point.failing && point.failing->result != 0 &&
        point.passing && point.passing->result == 0)
      return {0.86,
              {fmt::format("bind at {} was refused in the failing run only",
                           short_place(moment_of(*clues.order, point).place))}};
  }
  return {};
}

struct Rule {
  CauseKind kind;
  const char* name;
  const char* advice;
  Evidence (*look)(const Clues& clues);
};

constexpr Rule rules[] = {
    {CauseKind::async_wait, "async wait",
     "Wait for the condition itself instead of for a fixed time: a join, a future, a condition "
     "variable with its predicate, or polling until it holds. A longer time only makes the failure "
     "rarer.",
     async_wait},
    {CauseKind::ordering, "ordering",
     "Make the order explicit: let the barrier point wait until the critical one is over (join, "
     "future, latch, condition variable), or keep both under one lock and check there.",
     ordering},
    {CauseKind::lost_wakeup, "lost wake-up",
     "Keep what happened in a variable under the mutex and wait with a predicate: a signal that "
     "nobody waits for is forgotten.",
     lost_wakeup},
    {CauseKind::exact_timing, "exact timing",
     "Do not compare real time exactly: allow a tolerance, check only a lower bound, or give the "
     "code a clock that the test controls.",
     exact_timing},
    {CauseKind::teardown_race, "teardown race",
     "End the work before what it uses goes away: stop and join threads, and cancel callbacks, "
     "before the destructor or the end of main.",
     teardown_race},
    {CauseKind::deadlock, "deadlock",
     "Take the locks in one order everywhere (std::scoped_lock takes several at once), and wait "
     "for "
     "nobody while holding one.",
     deadlock},
    {CauseKind::starvation, "starvation",
     "Do not rely on getting the processor in time: block instead of spinning, and let time-outs "
     "be "
     "generous where they only guard against hanging.",
     starvation},
    {CauseKind::process_handover, "process hand-over",
     "Let the other side say that it is ready (a line on a pipe, a connection that is retried, a "
     "file "
     "renamed into place) before it is used.",
     process_handover},
    {CauseKind::resource, "resource",
     "Ask the system for a free one (port 0, a unique temporary folder) instead of a fixed one, "
     "and "
     "give it back before the next test.",
     resource},
    {CauseKind::unknown, "unknown",
     "Look at the two timelines: what comes between the delay and the failure is where to search.",
     nullptr},
};

const Rule& rule_of(CauseKind kind) {
  return *std::ranges::find(rules, kind, &Rule::kind);
}

}  // namespace

std::string_view to_string(CauseKind kind) {
  return rule_of(kind).name;
}

std::string_view advice_for(CauseKind kind) {
  return rule_of(kind).advice;
}

std::vector<Cause> causes_of(const Clues& clues) {
  std::vector<Cause> causes;
  for (const Rule& rule : rules) {
    if (!rule.look) continue;
    Evidence found = rule.look(clues);
    if (found.score > 0) causes.push_back({rule.kind, found.score, std::move(found.texts)});
  }
  std::ranges::stable_sort(causes, std::greater(), &Cause::score);
  if (causes.empty())
    causes.push_back({CauseKind::unknown, 0, {"no rule found evidence for a known root cause"}});
  return causes;
}

}  // namespace unflake
