#include "trace/happens_before.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "protocol/timing_apis.h"

namespace unflake {
namespace {

constexpr size_t most_lock_steps = 400;  // that are looked at; more are the same places again
constexpr size_t most_cycles = 12;
constexpr Duration longest_lock_hold = std::chrono::seconds(5);

// A visit of a lock's call.
struct Taking {
  uint32_t site = no_index;
  uint64_t visit = 0;
  auto operator<=>(const Taking&) const = default;
};

// A thread that has taken one lock takes another.
struct Step {
  uint32_t thread = no_index;
  uint64_t held = 0, wanted = 0;
  Taking first, second;
  std::set<uint64_t> guards;  // what else it holds then
};

bool may_be_late_for_each_other(const Step& a, const Step& b) {
  const auto is_guard_of_both = [&](uint64_t lock) { return b.guards.contains(lock); };
  return a.thread != b.thread && std::ranges::none_of(a.guards, is_guard_of_both);
}

class LockCycles {
 public:
  explicit LockCycles(const Trace& trace) : trace_(trace) {}

  std::vector<LockCycle> operator()() {
    for (const TracedCall& call : trace_.calls) follow(call);
    for (const Step& first : steps_) extend({&first});
    return std::move(found_);
  }

 private:
  struct Holder {
    std::map<uint64_t, Taking> locks;
    std::map<uint32_t, uint64_t> visits;  // by site
  };

  void follow(const TracedCall& call) {
    if (call.is_intervention || call.site >= trace_.sites.size()) return;
    Holder& holder = holders_[call.thread];
    const uint64_t visit = ++holder.visits[call.site];
    const auto* api = find_timing_api(trace_.sites[call.site].name.api);
    if (api == nullptr || (api->group_facts().traits & protocol::group_locks) == 0) return;
    if ((api->traits & protocol::api_wakes) != 0) {
      holder.locks.erase(call.object);
    } else if (call.result == 0 && !call.unfinished) {
      if ((api->traits & protocol::api_wait) != 0) note_steps(call, visit, holder);
      holder.locks[call.object] = {call.site, visit};
    }
  }

  void note_steps(const TracedCall& call, uint64_t visit, const Holder& holder) {
    for (const auto& [lock, taken] : holder.locks) {
      const bool is_known =
          !places_.insert({call.thread, taken.site, call.site, lock, call.object}).second;
      if (lock == call.object || is_known || steps_.size() == most_lock_steps) continue;
      Step step{call.thread, lock, call.object, taken, {call.site, visit}, {}};
      for (const auto& [other, at] : holder.locks)
        if (other != lock) step.guards.insert(other);
      steps_.push_back(std::move(step));
    }
  }

  // The first step of a cycle is the one that was seen first, so that each cycle is found once.
  void extend(const std::vector<const Step*>& path) {
    if (found_.size() == most_cycles) return;
    for (const Step& next : steps_) {
      const bool fits = &next > path.front() && next.held == path.back()->wanted &&
                        std::ranges::all_of(path, [&](const Step* other) {
                          return may_be_late_for_each_other(*other, next);
                        });
      if (!fits) continue;
      std::vector<const Step*> longer = path;
      longer.push_back(&next);
      if (next.wanted == path.front()->held)
        add(longer);
      else if (longer.size() < 3)
        extend(longer);
    }
  }

  Intervention at(const Step& step, const Taking& taking) const {
    const TracedThread& thread = trace_.threads[step.thread];
    Intervention what;
    what.site = trace_.sites[taking.site].name;
    what.threads = Intervention::Threads::named;
    what.thread = thread.name;
    what.executable = executable_of(trace_, thread);
    return what;
  }

  void add(const std::vector<const Step*>& cycle) {
    if (found_.size() == most_cycles) return;
    LockCycle found;
    for (const Step* step : cycle) {
      Intervention taken = at(*step, step->first);
      taken.action = Intervention::Action::watch;
      taken.position = Intervention::Position::after;
      found.plan.push_back(std::move(taken));
      found.why += fmt::format("{}{} takes {} and then {}", found.why.empty() ? "" : ", ",
                               told(trace_.threads[step->thread].name),
                               to_string(trace_.sites[step->first.site].name),
                               to_string(trace_.sites[step->second.site].name));
    }
    for (size_t i = 0; i < cycle.size(); ++i) {
      Intervention waits = at(*cycle[i], cycle[i]->second);
      waits.action = Intervention::Action::hold;
      waits.duration = longest_lock_hold;
      waits.visits = Intervention::Visits::only_nth;
      waits.nth = cycle[i]->second.visit;
      waits.until = (i + 1) % cycle.size();
      waits.count = cycle[(i + 1) % cycle.size()]->first.visit;
      found.plan.push_back(std::move(waits));
    }
    found.why += ": all of them at once";
    found_.push_back(std::move(found));
  }

  const Trace& trace_;
  std::map<uint32_t, Holder> holders_;  // by thread
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t, uint64_t>> places_;
  std::vector<Step> steps_;
  std::vector<LockCycle> found_;
};

}  // namespace

std::vector<LockCycle> find_lock_cycles(const Trace& trace) {
  return LockCycles(trace)();
}

}  // namespace unflake
