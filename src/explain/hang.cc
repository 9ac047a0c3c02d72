#include "explain/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "explain/call_order.h"
#include "explain/root_cause.h"
#include "trace/happens_before.h"
#include "trace/roles.h"

namespace unflake {
namespace {

constexpr size_t most_lines = 8;

// A call that somebody else has to end, by whatever name it is found again in another run.
struct CallName {
  std::string thread;
  SiteName site;
  uint64_t nth = 0;
};

class HangReader {
 public:
  HangReader(const Trace& hung, const Trace* passing, const Wrappers& wrappers)
      : hung_(hung),
        passing_(passing),
        wrappers_(wrappers),
        roles_(hung),
        locks_(stuck_locks(hung)),
        creations_(find_creations(hung)) {}

  std::vector<std::string> operator()() {
    std::map<std::string, size_t> line_of;  // by what threads of one kind wait for
    for (uint32_t thread = 0; thread < hung_.threads.size(); ++thread) {
      const TracedCall* call = last_call(hung_, thread);
      if (call == nullptr || !waits_for_ever(*call)) continue;
      const std::string kind = fmt::format("{}\n{}", roles_.kind_of(thread), call->site);
      const auto [known, is_new] = line_of.try_emplace(kind, waits_.size());
      if (is_new) waits_.push_back({call, 0});
      ++waits_[known->second].threads;
    }
    std::vector<std::string> lines;
    for (const Wait& wait : waits_)
      if (lines.size() < most_lines) lines.push_back(line(wait));
    return lines;
  }

 private:
  struct Wait {
    const TracedCall* call;
    size_t threads;
  };

  static bool is_known(const Trace& trace, const TracedCall& call) {
    return !call.is_intervention && call.thread < trace.threads.size() &&
           call.site < trace.sites.size();
  }

  static const TracedCall* last_call(const Trace& trace, uint32_t thread) {
    const TracedCall* last = nullptr;
    for (const TracedCall& call : trace.calls)
      if (call.thread == thread && is_known(trace, call)) last = &call;
    return last;
  }

  bool waits_for_ever(const TracedCall& call) const {
    const TracedSite& site = hung_.sites[call.site];
    return call.unfinished && may_wait(site) && !(takes_time(site) && call.value >= 0);
  }

  std::string who(const Trace& trace, uint32_t thread) const {
    return thread < trace.threads.size() ? told(trace.threads[thread].name) : "a thread";
  }

  std::string where(const Trace& trace, const TracedCall& call) const {
    if (const Frame* caller = caller_past(trace, call, wrappers_))
      return short_place({caller->file, caller->line, caller->function});
    return short_place(place_of(trace, trace.sites[call.site].name));
  }

  std::string line(const Wait& wait) const {
    const TracedCall& call = *wait.call;
    const std::string threads =
        wait.threads == 1
            ? who(hung_, call.thread) + " waits"
            : fmt::format("{} threads ({}) wait", wait.threads, roles_.shared_by(call.thread));
    return fmt::format("{} at {} {}", threads, where(hung_, call), reason(call));
  }

  std::string reason(const TracedCall& call) const {
    const TracedSite& site = hung_.sites[call.site];
    if (joins(site)) return for_end_of(call);
    if (is_lock(site)) return for_lock(call);
    return for_wake_up(call);
  }

  std::string for_end_of(const TracedCall& call) const {
    for (uint32_t thread = 0; thread < hung_.threads.size(); ++thread) {
      const size_t creation = creations_[thread];
      if (creation == no_call || hung_.calls[creation].object != call.object) continue;
      if (hung_.threads[thread].ended == Duration::zero())
        return "for the end of " + who(hung_, thread);
    }
    return "for the end of a thread";
  }

  std::string for_lock(const TracedCall& call) const {
    for (const StuckLocks::Wait& wait : locks_.waits) {
      if (wait.thread != call.thread || wait.holder == no_index) continue;
      std::string text = "for the lock that " + who(hung_, wait.holder) + " has";
      if (const TracedCall* taken = last_taken(wait.holder, call.object))
        text += " since " + where(hung_, *taken);
      return text;
    }
    return "for a lock that nobody is seen to have";
  }

  const TracedCall* last_taken(uint32_t holder, uint64_t object) const {
    const TracedCall* last = nullptr;
    for (const TracedCall& call : hung_.calls)
      if (call.thread == holder && call.object == object && is_known(hung_, call) &&
          is_lock(hung_.sites[call.site]) && !is_unlock(hung_.sites[call.site]) && !call.unfinished)
        last = &call;
    return last;
  }

  static uint64_t number_of(const Trace& trace, const TracedCall& call) {
    uint64_t number = 0;
    for (const TracedCall& other : trace.calls)
      if (other.thread == call.thread && other.site == call.site && !other.is_intervention &&
          &other <= &call)
        ++number;
    return number;
  }

  // The same call of the same thread; where the thread made fewer, its last one there.
  static const TracedCall* counterpart(const Trace& from, const TracedCall& call, const Trace& to) {
    const std::string& thread = from.threads[call.thread].name.text;
    const SiteName& site = from.sites[call.site].name;
    uint64_t left = number_of(from, call);
    const TracedCall* found = nullptr;
    for (const TracedCall& other : to.calls) {
      if (!is_known(to, other) || to.sites[other.site].name != site ||
          to.threads[other.thread].name.text != thread)
        continue;
      found = &other;
      if (--left == 0) break;
    }
    return found;
  }

  // Of the same object and process: the last that came before the wait was over.
  static const TracedCall* waker(const Trace& trace, const TracedCall& wait) {
    const TracedCall* last = nullptr;
    for (const TracedCall& call : trace.calls) {
      if (!is_known(trace, call) || call.thread == wait.thread || call.object != wait.object ||
          trace.threads[call.thread].process != trace.threads[wait.thread].process ||
          !can_wake(trace.sites[call.site]) || is_lock(trace.sites[call.site]))
        continue;
      if (call.enter > wait.exit) continue;
      if (last == nullptr || call.enter > last->enter) last = &call;
    }
    return last;
  }

  std::string for_wake_up(const TracedCall& call) const {
    const TracedCall* passed = passing_ ? counterpart(hung_, call, *passing_) : nullptr;
    const TracedCall* woken_by =
        passed && !passed->unfinished ? waker(*passing_, *passed) : nullptr;
    if (woken_by == nullptr) return "for what nobody is left to do" + last_wake(call);
    return fmt::format("to be woken by {}, as at {} when the test passes: {}",
                       who(*passing_, woken_by->thread), where(*passing_, *woken_by),
                       what_became_of(*woken_by, call));
  }

  std::string last_wake(const TracedCall& call) const {
    const TracedCall* last = waker(hung_, call);
    if (last == nullptr || last->enter > call.enter) return "";
    return fmt::format("; {} had done so at {} before it waited", who(hung_, last->thread),
                       where(hung_, *last));
  }

  std::string what_became_of(const TracedCall& wake, const TracedCall& wait) const {
    const TracedCall* done = counterpart(*passing_, wake, hung_);
    const bool is_done = done && number_of(*passing_, wake) <= number_of(hung_, *done);
    if (is_done && done->enter <= wait.enter)
      return fmt::format("here that came {} before the wait began, and was lost",
                         format_duration(wait.enter - done->enter));
    if (is_done) return "here that came, and did not end the wait";
    const std::string& name = passing_->threads[wake.thread].name.text;
    for (uint32_t thread = 0; thread < hung_.threads.size(); ++thread) {
      if (hung_.threads[thread].name.text != name) continue;
      if (hung_.threads[thread].ended != Duration::zero()) return "here it has ended without that";
      const TracedCall* last = last_call(hung_, thread);
      if (last != nullptr && last->unfinished)
        return "here it waits itself, at " + where(hung_, *last);
      return "here it has not come there";
    }
    return "here there is no such thread";
  }

  const Trace& hung_;
  const Trace* const passing_;
  const Wrappers& wrappers_;
  const ThreadRoles roles_;
  const StuckLocks locks_;
  const std::vector<size_t> creations_;
  std::vector<Wait> waits_;
};

}  // namespace

std::vector<std::string> describe_hang(const Trace& hung, const Trace* passing,
                                       const Wrappers& wrappers) {
  return HangReader(hung, passing, wrappers)();
}

}  // namespace unflake
