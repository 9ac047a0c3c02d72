#include "explain/root_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "explain/call_order.h"
#include "trace/happens_before.h"
#include "util/text.h"

namespace unflake {
namespace {

struct Rule {
  RootCauseKind kind;
  const char* name;
  const char* advice;
  RootCauseEvidence (*look)(const Clues& clues);
};

constexpr Rule rules[] = {
    {RootCauseKind::async_wait, "async wait",
     "Wait for the condition itself instead of for a fixed time: a join, a future, a condition "
     "variable with its predicate, or polling until it holds. A longer time only makes the failure "
     "rarer.",
     async_wait},
    {RootCauseKind::ordering, "ordering",
     "Make the order explicit: let the barrier point wait until the critical one is over (join, "
     "future, latch, condition variable), or keep both under one lock and check there.",
     ordering},
    {RootCauseKind::lost_wakeup, "lost wake-up",
     "Keep what happened in a variable under the mutex and wait with a predicate: a signal that "
     "nobody waits for is forgotten.",
     lost_wakeup},
    {RootCauseKind::exact_timing, "exact timing",
     "Do not compare real time exactly: allow a tolerance, check only a lower bound, or give the "
     "code a clock that the test controls.",
     exact_timing},
    {RootCauseKind::teardown_race, "teardown race",
     "End the work before what it uses goes away: stop and join threads, and cancel callbacks, "
     "before the destructor or the end of main.",
     teardown_race},
    {RootCauseKind::deadlock, "deadlock",
     "Take the locks in one order everywhere (std::scoped_lock takes several at once), and wait "
     "for nobody while holding one.",
     deadlock},
    {RootCauseKind::starvation, "starvation",
     "Do not rely on getting the processor or a lock in time: block instead of spinning, hold "
     "locks briefly, and let time-outs be generous where they only guard against hanging.",
     starvation},
    {RootCauseKind::process_handover, "process hand-over",
     "Let the other side say that it is ready (a line on a pipe, a connection that is retried, a "
     "file renamed into place) before it is used.",
     process_handover},
    {RootCauseKind::resource, "resource",
     "Use it only when it is there: listen before anybody may connect, close before anybody opens "
     "again, and ask the system for a free one (port 0, a unique temporary folder) instead of a "
     "fixed one.",
     resource},
    {RootCauseKind::unknown, "unknown",
     "Look at the two timelines: what comes between the delay and the failure is where to search.",
     nullptr},
};

const Rule& rule_of(RootCauseKind kind) {
  return *std::ranges::find(rules, kind, &Rule::kind);
}

}  // namespace

std::string_view to_string(RootCauseKind kind) {
  return rule_of(kind).name;
}

std::string_view advice_for(RootCauseKind kind) {
  return rule_of(kind).advice;
}

bool Clues::failed_like(OutcomeKind kind) const {
  return (failing ? failing->outcome.kind : repro->outcome) == kind;
}

// A check that aborts has seen what is wrong before anything broke.
bool Clues::crashed() const {
  if (repro->failure.kind == FailureKind::assertion) return false;
  return failed_like(OutcomeKind::crash) || is_sanitizer(repro->failure.kind);
}

std::vector<RootCause> root_causes_of(const Clues& clues) {
  std::vector<RootCause> causes;
  for (const Rule& rule : rules) {
    if (!rule.look) continue;
    RootCauseEvidence found = rule.look(clues);
    if (found.score > 0) causes.push_back({rule.kind, found.score, std::move(found.texts)});
  }
  std::ranges::stable_sort(causes, std::greater(), &RootCause::score);
  std::vector<std::string> against;
  std::erase_if(causes, [&](const RootCause& cause) {
    const std::string text = contradiction(cause.kind, *clues.found);
    if (!text.empty()) against.push_back(fmt::format("{}: {}", to_string(cause.kind), text));
    return !text.empty();
  });
  if (!causes.empty()) return causes;
  if (against.empty()) against.push_back("no rule found evidence for a known root cause");
  return {{RootCauseKind::unknown, 0, std::move(against)}};
}

// An explanation never says what experiments have shown to be wrong.
std::string contradiction(RootCauseKind kind, const Explanation& found) {
  const CauseFacts& facts = found.facts;
  const bool has_one_wait = found.wait && found.wait->times == 1;
  if (kind == RootCauseKind::async_wait && CauseFacts::holds(facts.late_as_a_whole))
    return "the test passes when the thread is as late before all that it does";
  if (kind == RootCauseKind::async_wait && has_one_wait && CauseFacts::never(facts.longer_wait))
    return "a longer wait does not help";
  if (kind == RootCauseKind::lost_wakeup && facts.waiting_first.hits < facts.waiting_first.runs)
    return "it does not always help that somebody waits before the wake-up comes";
  if (kind == RootCauseKind::exact_timing && found.pair && found.pair->is_shown)
    return "the order of two threads decides, whatever the time";
  return "";
}

namespace {

// The destructors of the standard library are mostly those of locks and pointers, those of a test
// framework are how it reports a failure, and what a lambda has taken with it goes when it was
// called.
bool is_clean_up(std::string_view function) {
  return (function.find("::~") != std::string_view::npos && !is_system_function(function) &&
          !is_framework_function(function) &&
          function.find("::~<lambda") == std::string_view::npos) ||
         function.find("__run_exit_handlers") != std::string_view::npos ||
         function.find("__cxa_finalize") != std::string_view::npos;
}

const Frame* clean_up_frame(const TracedStack& stack) {
  for (const TracedFrame& frame : stack.frames)
    for (const Frame& source : frame.source)
      if (is_clean_up(source.function)) return &source;
  return nullptr;
}

const Frame* clean_up_of(const Trace& trace, const TracedCall* call) {
  if (!call || call->stack >= trace.stacks.size()) return nullptr;
  return clean_up_frame(trace.stacks[call->stack]);
}

// Whoever was overtaken, or did the overtaking, in a destructor.
std::string pair_in_clean_up(const Clues& clues) {
  const Point* second = clues.second();
  if (!second) return "";
  const Frame* frame = clean_up_of(clues.failing->trace, second->failing);
  if (!frame) return "";
  return fmt::format("{} came there in {}", clues.order->who(*second), frame->function);
}

// A worker that fails while somebody who takes things away is late on its way.
std::string late_in_clean_up(const Clues& clues) {
  if (!clues.order || !clues.order->failure) return "";
  const Point& failure = clues.order->points[*clues.order->failure];
  for (const Lateness& late : clues.found->late)
    if (is_clean_up(late.place.function) &&
        late.thread != clues.order->threads[failure.thread].name)
      return fmt::format("{} fails while {} is in {}", clues.order->who(failure), who_is(late),
                         late.place.function);
  return "";
}

std::string outlived_main(const Clues& clues) {
  const TracedFailure* failure = main_failure(clues.failing->trace);
  if (!failure || failure->thread >= clues.failing->trace.threads.size()) return "";
  const auto& threads = clues.failing->trace.threads;
  if (threads[failure->thread].parent == no_index) return "";
  for (const TracedCall& call : clues.failing->trace.calls)
    if (call.thread < threads.size() && threads[call.thread].parent == no_index &&
        (call.exit > failure->at || call.unfinished))
      return "";
  return fmt::format("{} was still at work when main had made its last call",
                     who_is(clues.failing->trace, failure->thread));
}

}  // namespace

namespace {

std::string closed_before_use(const Clues& clues) {
  const Point* second = clues.second();
  if (!second || !clues.pair->same_object) return "";
  const TracedSite* site = clues.order->site_of(*second);
  if (!site || !closes(*site)) return "";
  return fmt::format("it was closed at {} before it was used at {}",
                     short_place(clues.found->pair->second.place),
                     short_place(clues.found->pair->first.place));
}

}  // namespace

namespace {

// What C and pools have for destructors, by the last words of its name.
const Frame* frame_that_takes_away(const Trace& trace, const TracedCall* call) {
  if (!call || call->stack >= trace.stacks.size()) return nullptr;
  for (const TracedFrame& frame : trace.stacks[call->stack].frames)
    for (const Frame& source : frame.source) {
      const std::string name = source.function.substr(source.function.rfind(':') + 1);
      for (const char* word :
           {"destroy", "free", "release", "dispose", "teardown", "tear_down", "cleanup", "clean_up",
            "finalize", "shutdown", "shut_down", "recycle"})
        if (is_own(frame, source) && (name.starts_with(word) || name.ends_with(word)))
          return &source;
    }
  return nullptr;
}

// Whether the thread of the barrier point waits for the end of the late one only after it.
bool is_joined_too_late(const Clues& clues) {
  const Point &first = *clues.first(), &second = *clues.second();
  const uint32_t late = clues.order->threads[first.thread].failing;
  const Trace& trace = *clues.order->failing;
  if (late == no_index || !second.failing_at) return false;
  return std::ranges::any_of(trace.calls, [&](const TracedCall& call) {
    return call.site < trace.sites.size() && joins(trace.sites[call.site]) &&
           call.thread == clues.order->threads[second.thread].failing &&
           call.enter > *second.failing_at && call.exit >= trace.threads[late].ended;
  });
}

// What the thread still uses is taken away, and whoever does it waits for its end only then.
std::string taken_away_before_join(const Clues& clues) {
  if (!clues.pair || !clues.pair->same_object || !clues.found->pair->is_shown) return "";
  if (!CauseFacts::holds(clues.found->facts.after_its_end) || !is_joined_too_late(clues)) return "";
  const Frame* frame = frame_that_takes_away(clues.failing->trace, clues.second()->failing);
  if (!frame) return "";
  return fmt::format("{} may come to {} after {}, and its end is awaited only then",
                     clues.order->who(*clues.first()), short_place(clues.found->pair->first.place),
                     frame->function);
}

}  // namespace

RootCauseEvidence teardown_race(const Clues& clues) {
  if (!clues.failing) return {};
  if (const std::string text = taken_away_before_join(clues); !text.empty()) return {0.92, {text}};
  if (const std::string text = closed_before_use(clues); !text.empty()) return {0.94, {text}};
  std::vector<std::string> texts;
  const TracedFailure* failure = main_failure(clues.failing->trace);
  if (const Frame* frame = failure ? clean_up_frame(failure->stack) : nullptr)
    texts.push_back("it failed in " + frame->function);
  for (const std::string& text : {pair_in_clean_up(clues), outlived_main(clues)})
    if (!text.empty()) texts.push_back(text);
  if (const std::string text = late_in_clean_up(clues); !text.empty()) return {0.93, {text}};
  const bool is_shown = clues.found->pair && clues.found->pair->is_shown;
  if (!clues.crashed() && texts.empty()) return {};
  if (!clues.crashed()) return {is_shown && !pair_in_clean_up(clues).empty() ? 0.93 : 0.5, texts};
  const std::string message = clues.repro->failure.message;
  if (message.find("use-after-free") != std::string::npos ||
      message.find("use-after-scope") != std::string::npos)
    texts.push_back("it used what was already destroyed");
  if (!texts.empty()) return {0.93, texts};
  if (clues.first() && clues.order->failure &&
      clues.order->points[*clues.order->failure].thread == clues.first()->thread)
    return {0.91, {"the thread that was late crashed after another one had overtaken it"}};
  return {};
}

namespace {

std::string cycle_text(const Trace& trace, const StuckLocks& stuck) {
  std::vector<std::string> parts;
  for (const size_t number : stuck.cycle) {
    const StuckLocks::Wait& wait = stuck.waits[number];
    const std::string place = wait.site < trace.sites.size()
                                  ? short_place(place_of(trace, trace.sites[wait.site].name))
                                  : "?";
    parts.push_back(fmt::format("{} waits at {} for a lock of {}", who_is(trace, wait.thread),
                                place, who_is(trace, wait.holder)));
  }
  return join(parts, "; ");
}

int threads_in_locks(const std::vector<ThreadAtEnd>& threads) {
  const auto is_in_lock = [](const ThreadAtEnd& thread) {
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
  return std::ranges::any_of(trace.calls, [&](const TracedCall& call) {
    return call.thread == thread && call.unfinished && !call.is_intervention &&
           call.site < trace.sites.size() && !is_lock(trace.sites[call.site]);
  });
}

}  // namespace

namespace {

// Locks that a program makes of futexes name no owner. Where several threads wait for ever, and for
// different things, each of them keeps what another one wants.
std::string waits_for_each_other(const Trace& trace) {
  std::map<uint64_t, std::string> waits;  // by object
  for (const TracedCall& call : trace.calls) {
    if (!call.unfinished || call.is_intervention || call.value >= 0) continue;
    if (call.site >= trace.sites.size() || call.thread >= trace.threads.size()) continue;
    const TracedSite& site = trace.sites[call.site];
    if (may_wait(site) && !joins(site))
      waits[call.object] = fmt::format("{} waits at {}", who_is(trace, call.thread),
                                       short_place(place_of(trace, site.name)));
  }
  if (waits.size() < 2) return "";
  std::vector<std::string> texts;
  for (const auto& [object, text] : waits) texts.push_back(text);
  return join(texts, ", ") + ", and nobody is left to wake either";
}

}  // namespace

RootCauseEvidence deadlock(const Clues& clues) {
  if (!clues.failing || !clues.failed_like(OutcomeKind::timeout)) return {};
  const Trace& trace = clues.failing->trace;
  const StuckLocks stuck = stuck_locks(trace);
  if (!stuck.cycle.empty()) return {0.97, {cycle_text(trace, stuck)}};
  if (const std::string text = waits_for_each_other(trace); !text.empty()) return {0.94, {text}};
  for (const StuckLocks::Wait& wait : stuck.waits)
    if (is_stuck_elsewhere(trace, wait.holder))
      return {0.85,
              {fmt::format("{} waits for a lock of {}, which waits for something else and never "
                           "lets it go",
                           who_is(trace, wait.thread), who_is(trace, wait.holder))}};
  const int in_locks = std::max(static_cast<int>(stuck.waits.size()),
                                threads_in_locks(clues.failing->thread_stacks));
  if (in_locks == 0) return {};
  return {in_locks > 1 ? 0.65 : 0.35,
          {fmt::format("{} {} waiting for a lock when time ran out", in_locks,
                       in_locks == 1 ? "thread was" : "threads were")}};
}

namespace {

class LockGraph {
 public:
  explicit LockGraph(const Trace& trace) : trace_(trace) {}

  StuckLocks operator()() {
    std::vector<const TracedCall*> calls;
    for (const TracedCall& call : trace_.calls)
      if (!call.is_intervention && call.site < trace_.sites.size() &&
          is_lock(trace_.sites[call.site]))
        calls.push_back(&call);
    std::ranges::stable_sort(calls, {}, [](const TracedCall* call) { return call->exit; });
    for (const TracedCall* call : calls) follow(*call);
    for (StuckLocks::Wait& wait : stuck_.waits) wait.holder = holder_of(wanted_[wait.thread]);
    find_cycle();
    return std::move(stuck_);
  }

 private:
  using Lock = std::pair<uint32_t, uint64_t>;  // process and address

  Lock lock_of(const TracedCall& call) const {
    const bool known = call.thread < trace_.threads.size();
    return {known ? trace_.threads[call.thread].process : no_index, call.object};
  }

  // Of a lock for several readers only the last one is remembered.
  void follow(const TracedCall& call) {
    if (call.unfinished) {
      stuck_.waits.push_back({call.thread, call.site, no_index});
      wanted_[call.thread] = lock_of(call);
    } else if (is_unlock(trace_.sites[call.site])) {
      holders_.erase(lock_of(call));
    } else if (call.result == 0) {
      holders_[lock_of(call)] = call.thread;
    }
  }

  uint32_t holder_of(const Lock& lock) const {
    const auto found = holders_.find(lock);
    return found == holders_.end() ? no_index : found->second;
  }

  const StuckLocks::Wait* wait_of(uint32_t thread) const {
    const auto found = std::ranges::find(stuck_.waits, thread, &StuckLocks::Wait::thread);
    return found == stuck_.waits.end() ? nullptr : &*found;
  }

  void find_cycle() {
    for (const StuckLocks::Wait& start : stuck_.waits) {
      std::vector<size_t> path;
      const StuckLocks::Wait* at = &start;
      while (at && path.size() <= stuck_.waits.size()) {
        path.push_back(static_cast<size_t>(at - stuck_.waits.data()));
        if (at->holder == start.thread) {
          stuck_.cycle = path;
          return;
        }
        at = wait_of(at->holder);
      }
    }
  }

  const Trace& trace_;
  StuckLocks stuck_;
  std::map<Lock, uint32_t> holders_;
  std::map<uint32_t, Lock> wanted_;
};

}  // namespace

StuckLocks stuck_locks(const Trace& trace) {
  return LockGraph(trace)();
}

}  // namespace unflake
