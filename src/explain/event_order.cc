#include "explain/event_order.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include "protocol/agent_protocol.h"
#include "trace/api_traits.h"

namespace unflake {
namespace {

// A thread that is delayed before a line has come there, and has not executed it.
Duration reached(const Trace& trace, const TracedEvent& event) {
  const TracedEvent* next = &event + 1;
  const bool is_last = next == trace.events.data() + trace.events.size();
  const bool is_line = event.site < trace.sites.size() && trace.sites[event.site].name.api.empty();
  if (!is_line || is_last || !next->is_intervention) return event.enter;
  return next->thread == event.thread && next->site == event.site ? next->exit : event.enter;
}

class Matcher {
 public:
  Matcher(const Trace& passing, const Trace& failing, bool plan_is_passing) {
    order_.passing = &passing;
    order_.failing = &failing;
    order_.plan_is_passing = plan_is_passing;
  }

  EventOrder operator()() {
    number_threads(*order_.passing, &OrderedThread::passing, passing_threads_);
    number_threads(*order_.failing, &OrderedThread::failing, failing_threads_);
    add_calls(*order_.passing, passing_threads_, &Call::passing);
    add_calls(*order_.failing, failing_threads_, &Call::failing);
    for (const Call& call : calls_) add_points(call);
    for (uint32_t i = 0; i < order_.threads.size(); ++i) add_end(i);
    find_lateness();
    add_failure();
    find_divergence();
    return std::move(order_);
  }

 private:
  struct Call {
    uint32_t thread = no_index;
    const TracedEvent* passing = nullptr;
    const TracedEvent* failing = nullptr;
  };

  // Threads of two processes may have the same name: their numbers tell them apart.
  void number_threads(const Trace& trace, uint32_t OrderedThread::*side,
                      std::vector<uint32_t>& numbers) {
    std::map<std::string, int> seen;
    for (uint32_t i = 0; i < trace.threads.size(); ++i) {
      const std::string& name = trace.threads[i].name.text;
      const auto [known, is_new] =
          names_.try_emplace({name, ++seen[name]}, static_cast<uint32_t>(order_.threads.size()));
      if (is_new) order_.threads.push_back({name, no_index, no_index, {}, {}});
      order_.threads[known->second].*side = i;
      numbers.push_back(known->second);
    }
  }

  void add_calls(const Trace& trace, const std::vector<uint32_t>& threads,
                 const TracedEvent* Call::*side) {
    std::vector<uint32_t> sites;
    for (const TracedSite& site : trace.sites)
      sites.push_back(sites_.try_emplace(to_string(site.name), static_cast<uint32_t>(sites_.size()))
                          .first->second);
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> visits;
    for (const TracedEvent& event : trace.events) {
      if (event.is_intervention || event.thread >= threads.size() || event.site >= sites.size())
        continue;
      const uint32_t thread = threads[event.thread], site = sites[event.site];
      const auto [known, is_new] =
          numbers_.try_emplace({thread, site, ++visits[{thread, site}]}, calls_.size());
      if (is_new) calls_.push_back({thread, nullptr, nullptr});
      calls_[known->second].*side = &event;
    }
  }

  void add_points(const Call& call) {
    Point point;
    point.thread = call.thread;
    point.passing = call.passing;
    point.failing = call.failing;
    if (call.passing)
      point.passing_from = point.passing_to = reached(*order_.passing, *call.passing);
    if (call.failing) point.failing_at = reached(*order_.failing, *call.failing);
    order_.points.push_back(point);
    // Who asked for a lock first is who has it first, mostly: one point says enough.
    const bool gave_up = call.failing && call.failing->timed_out;
    if (order_.group_of(point) == "lock" && !gave_up) return;
    if (!(order_.traits_of(point) & protocol::api_wait)) return;
    point.kind = Point::Kind::end;
    point.passing_from = point.passing_to = point.failing_at = std::nullopt;
    if (call.passing && !call.passing->unfinished)
      point.passing_from = point.passing_to = call.passing->exit;
    if (call.failing && !call.failing->unfinished) point.failing_at = call.failing->exit;
    if (point.passing_from || point.failing_at) order_.points.push_back(point);
  }

  static std::optional<Duration> end_in(const Trace& trace, uint32_t thread) {
    if (thread >= trace.threads.size() || trace.threads[thread].ended == Duration::zero())
      return std::nullopt;
    return trace.threads[thread].ended;
  }

  void add_end(uint32_t number) {
    const OrderedThread& thread = order_.threads[number];
    Point point;
    point.kind = Point::Kind::thread_end;
    point.thread = number;
    point.passing_from = point.passing_to = end_in(*order_.passing, thread.passing);
    point.failing_at = end_in(*order_.failing, thread.failing);
    if (point.passing_from || point.failing_at) order_.points.push_back(point);
  }

  void find_lateness() {
    const auto& numbers = order_.plan_is_passing ? passing_threads_ : failing_threads_;
    for (const TracedEvent& event : order_.with_plan().events) {
      if (!event.is_intervention || event.thread >= numbers.size()) continue;
      OrderedThread& thread = order_.threads[numbers[event.thread]];
      thread.late_from = std::min(thread.late_from.value_or(event.enter), event.enter);
      thread.late_to = std::max(thread.late_to.value_or(event.exit), event.exit);
    }
  }

  // The passing run was at the failing line somewhere between two calls that are known.
  void add_failure() {
    const auto& failures = order_.failing->failures;
    const auto found = std::ranges::find_if(
        failures, [](const TracedFailure& one) { return one.kind != "thrown before"; });
    if (found == failures.end() || found->thread >= failing_threads_.size()) return;
    Point point;
    point.kind = Point::Kind::failure;
    point.thread = failing_threads_[found->thread];
    point.failing_at = found->at;
    Duration from{};
    for (const Point& other : order_.points)
      if (other.thread == point.thread && other.failing_at && *other.failing_at <= found->at)
        from = std::max(from, other.passing_from.value_or(from));
    Duration to = end_of(*order_.passing);
    for (const Point& other : order_.points)
      if (other.thread == point.thread && other.passing_from && *other.passing_from > from)
        to = std::min(to, *other.passing_from);
    if (order_.threads[point.thread].passing != no_index) {
      point.passing_from = from;
      point.passing_to = std::max(from, to);
    }
    order_.failure = order_.points.size();
    order_.points.push_back(point);
  }

  // Where nothing was captured, it is the first thread of the first process whose status tells.
  void find_divergence() {
    if (order_.passing->threads.empty() || order_.failing->threads.empty()) return;
    const OrderedThread& thread = order_.threads[order_.failing_thread().value_or(0)];
    if (thread.passing == no_index || thread.failing == no_index || thread.late_from) return;
    const Trace &passing = *order_.passing, &failing = *order_.failing;
    order_.divergence = order_.failure
                            ? first_error(passing, thread.passing, failing, thread.failing)
                            : divergence(passing, thread.passing, failing, thread.failing);
  }

  EventOrder order_;
  std::vector<uint32_t> passing_threads_, failing_threads_;  // their numbers in the order
  std::map<std::pair<std::string, int>, uint32_t> names_;
  std::unordered_map<std::string, uint32_t> sites_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, size_t> numbers_;  // thread, site, visit
  std::vector<Call> calls_;
};

}  // namespace

std::optional<uint32_t> EventOrder::failing_thread() const {
  if (failure) return points[*failure].thread;
  return divergence ? std::optional<uint32_t>(0) : std::nullopt;
}

Duration EventOrder::decided_by() const {
  const Duration failed = failure ? *points[*failure].failing_at : Duration::max();
  return std::min(failed, divergence.value_or(failed));
}

const TracedSite* EventOrder::site_of(const Point& point) const {
  if (point.passing && point.passing->site < passing->sites.size())
    return &passing->sites[point.passing->site];
  if (point.failing && point.failing->site < failing->sites.size())
    return &failing->sites[point.failing->site];
  return nullptr;
}

uint16_t EventOrder::traits_of(const Point& point) const {
  const TracedSite* site = site_of(point);
  return site ? api_traits(*site) : 0;
}

std::string_view EventOrder::group_of(const Point& point) const {
  const TracedSite* site = site_of(point);
  return site ? std::string_view(site->group) : std::string_view();
}

EventOrder order_events(const Trace& passing, const Trace& failing, bool plan_is_passing) {
  return Matcher(passing, failing, plan_is_passing)();
}

namespace {

int sign_of(int32_t result) {
  return result < 0 ? -1 : result > 0;
}

struct Call {
  std::string site;
  const TracedEvent* event = nullptr;
};

std::vector<Call> calls_of(const Trace& trace, uint32_t thread) {
  std::vector<Call> calls;
  for (const TracedEvent& event : trace.events)
    if (event.thread == thread && !event.is_intervention && event.site < trace.sites.size())
      calls.push_back({to_string(trace.sites[event.site].name), &event});
  return calls;
}

// A loop that goes round more often is no other way: the last visit of a site stands for it.
std::map<std::string, const TracedEvent*> last_calls(const std::vector<Call>& calls) {
  std::map<std::string, const TracedEvent*> last;
  for (const Call& call : calls) last[call.site] = call.event;
  return last;
}

class Divergence {
 public:
  Divergence(const std::vector<Call>& passing, const std::vector<Call>& failing)
      : passing_(last_calls(passing)), failing_(last_calls(failing)) {
    for (const Call& call : failing) compare(call);
    const std::string* shared = nullptr;
    for (const Call& call : passing) {
      if (failing_.contains(call.site))
        shared = &call.site;
      else if (shared)
        take(failing_.at(*shared)->exit);  // and then it went another way
    }
  }

  std::optional<Duration> first() const { return first_; }

 private:
  void compare(const Call& call) {
    const auto other = passing_.find(call.site);
    if (other == passing_.end()) return take(call.event->enter);
    if (call.event != failing_.at(call.site)) return;
    if (sign_of(call.event->result) != sign_of(other->second->result) ||
        call.event->timed_out != other->second->timed_out)
      take(call.event->exit);
  }

  void take(Duration at) { first_ = std::min(first_.value_or(at), at); }

  std::map<std::string, const TracedEvent*> passing_, failing_;
  std::optional<Duration> first_;
};

}  // namespace

std::optional<Duration> divergence(const Trace& passing, uint32_t passing_thread,
                                   const Trace& failing, uint32_t failing_thread) {
  return Divergence(calls_of(passing, passing_thread), calls_of(failing, failing_thread)).first();
}

std::optional<Duration> first_error(const Trace& passing, uint32_t passing_thread,
                                    const Trace& failing, uint32_t failing_thread) {
  const auto before = last_calls(calls_of(passing, passing_thread));
  std::optional<Duration> first;
  for (const auto& [site, event] : last_calls(calls_of(failing, failing_thread))) {
    const auto other = before.find(site);
    if (event->result >= 0 || other == before.end() || other->second->result < 0) continue;
    first = std::min(first.value_or(event->exit), event->exit);
  }
  return first;
}

}  // namespace unflake
