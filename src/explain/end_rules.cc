#include "explain/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/lock_graph.h"
#include "explain/moments.h"
#include "util/text.h"

namespace unflake {
namespace {

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
  const Point* second = clues.second();
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

}  // namespace

CauseEvidence teardown_race(const Clues& clues) {
  if (!clues.failing) return {};
  std::vector<std::string> texts;
  const TracedFailure* failure = main_failure(clues.failing->trace);
  if (const Frame* frame = failure ? clean_up_frame(failure->stack) : nullptr)
    texts.push_back("it failed in " + frame->function);
  for (const std::string& text : {pair_in_clean_up(clues), outlived_main(clues)})
    if (!text.empty()) texts.push_back(text);
  if (!clues.crashed()) return texts.empty() ? CauseEvidence{} : CauseEvidence{0.5, texts};
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
    parts.push_back(fmt::format("{} waits at {} for a lock of {}",
                                name_of_thread(trace, wait.thread), place,
                                name_of_thread(trace, wait.holder)));
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
  return std::ranges::any_of(trace.events, [&](const TracedEvent& event) {
    return event.thread == thread && event.unfinished && !event.is_intervention &&
           event.site < trace.sites.size() && trace.sites[event.site].group != "lock";
  });
}

}  // namespace

CauseEvidence deadlock(const Clues& clues) {
  if (!clues.failing || !clues.failed_like(OutcomeKind::timeout)) return {};
  const Trace& trace = clues.failing->trace;
  const StuckLocks stuck = stuck_locks(trace);
  if (!stuck.cycle.empty()) return {0.97, {cycle_text(trace, stuck)}};
  for (const StuckLocks::Wait& wait : stuck.waits)
    if (is_stuck_elsewhere(trace, wait.holder))
      return {
          0.85,
          {fmt::format("{} waits for a lock of {}, which waits for something else and never "
                       "lets it go",
                       name_of_thread(trace, wait.thread), name_of_thread(trace, wait.holder))}};
  const int in_locks = std::max(static_cast<int>(stuck.waits.size()),
                                threads_in_locks(clues.failing->thread_stacks));
  if (in_locks == 0) return {};
  return {in_locks > 1 ? 0.65 : 0.35,
          {fmt::format("{} {} waiting for a lock when time ran out", in_locks,
                       in_locks == 1 ? "thread was" : "threads were")}};
}

}  // namespace unflake
