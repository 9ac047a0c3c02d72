#include "search/schedule/interleaving.h"

#include <algorithm>

namespace unflake {

bool is_conflict(const ThreadAccess& a, const ThreadAccess& b) {
  if (a.object == no_object || b.object == no_object) return false;
  if (a.object == any_object || b.object == any_object) return true;
  return shared_part(a.object) == shared_part(b.object) && (a.writes || b.writes);
}

uint64_t shared_part(uint64_t object) {
  const bool is_descriptor = object != any_object && (object & descriptor_object) != 0;
  return is_descriptor ? descriptor_object : object;
}

void PendingAccesses::arrive(const SwitchPoint& point) {
  ThreadAccess& access = pending_[point.thread];
  access.thread = point.thread;
  access.site = point.site;
  access.object = point.object;
  access.writes = point.writes;
  access.stack = point.stack;
  ++access.nth;
}

ThreadAccess PendingAccesses::of(ThreadNumber thread) const {
  const auto found = pending_.find(thread);
  if (found != pending_.end()) return found->second;
  ThreadAccess start;
  start.thread = thread;
  start.is_start = true;
  return start;
}

std::vector<ThreadAccess> executed_accesses(const ControlledRun& run) {
  std::vector<ThreadAccess> all;
  all.reserve(run.points.size());
  PendingAccesses pending;
  for (const SwitchPoint& point : run.points) {
    pending.arrive(point);
    all.push_back(pending.of(point.chosen));
    all.back().point = all.size() - 1;
  }
  return all;
}

bool can_stay(const SwitchPoint& point) {
  return std::ranges::binary_search(point.enabled, point.thread);
}

ThreadNumber undisturbed_choice(const SwitchPoint& point) {
  if (can_stay(point) || point.enabled.empty()) return point.thread;
  return point.enabled.front();
}

uint64_t OrderHash::mixed(uint64_t hash, const Event& event) {
  for (const uint64_t word : {uint64_t{event.thread} + 1, event.nth}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

// A sum over events does not depend on their order; what each adds is its place in its thread and
// the events that it comes right after.
void OrderHash::add(const ThreadAccess& access) {
  const Event event{access.thread, access.nth};
  const auto comes_after = [&](const Event& earlier) {
    if (earlier.thread != event.thread) sum_ += mixed(mixed(2, event), earlier);
  };
  sum_ += mixed(1, event);
  if (access.object == no_object) return;
  last_of_[event.thread] = event.nth;
  if (access.object == any_object) {
    for (const auto& [thread, nth] : last_of_) comes_after({thread, nth});
    barrier_ = event;
    return;
  }
  if (barrier_) comes_after(*barrier_);
  ObjectState& object = objects_[shared_part(access.object)];
  if (object.write) comes_after(*object.write);
  if (!access.writes) {
    object.reads.push_back(event);
    return;
  }
  for (const Event& read : object.reads) comes_after(read);
  object = {event, {}};
}

uint32_t ScheduleCoverage::place_of(const Trace& trace, uint32_t site) {
  if (site >= trace.sites.size()) return no_index;
  const auto next = static_cast<uint32_t>(places_.size());
  return places_.try_emplace(trace.sites[site].name, next).first->second;
}

// Only where both threads stood before their accesses is it sure that either could have been first.
bool ScheduleCoverage::add_pairs(const Trace& trace) {
  bool is_new = false;
  PendingAccesses pending;
  for (const SwitchPoint& point : trace.controlled->points) {
    pending.arrive(point);
    const ThreadAccess first = pending.of(point.chosen);
    for (const ThreadNumber thread : point.enabled) {
      const ThreadAccess then = pending.of(thread);
      if (thread == point.chosen || !is_conflict(first, then)) continue;
      const uint32_t a = place_of(trace, first.site), b = place_of(trace, then.site);
      if (a == no_index || b == no_index) continue;
      int& seen = pairs_[{std::min(a, b), std::max(a, b)}];
      const int now = seen | (a == b ? 3 : a < b ? 1 : 2);
      is_new |= now != seen;
      seen = now;
    }
  }
  return is_new;
}

bool ScheduleCoverage::add(const Trace& trace) {
  ++runs_;
  OrderHash hash;
  for (const ThreadAccess& access : executed_accesses(*trace.controlled)) hash.add(access);
  const bool is_new_pair = add_pairs(trace);
  const bool is_new = ++orders_[hash.value()] == 1;
  since_new_ = is_new || is_new_pair ? 0 : since_new_ + 1;
  since_new_pair_ = is_new_pair ? 0 : since_new_pair_ + 1;
  return is_new || is_new_pair;
}

size_t ScheduleCoverage::pairs_in_both_orders() const {
  return static_cast<size_t>(
      std::ranges::count_if(pairs_, [](const auto& pair) { return pair.second == 3; }));
}

size_t ScheduleCoverage::orders_seen_once() const {
  return static_cast<size_t>(
      std::ranges::count_if(orders_, [](const auto& order) { return order.second == 1; }));
}

}  // namespace unflake
