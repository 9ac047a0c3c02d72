#include "explain/call_order.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "protocol/agent_protocol.h"
#include "trace/happens_before.h"

namespace unflake {
namespace {

// A thread that is delayed before a line has reached it, but has not executed it.
Duration reached(const Trace& trace, const TracedCall& call) {
  const TracedCall* next = &call + 1;
  const bool is_last = next == trace.calls.data() + trace.calls.size();
  const bool is_line = call.site < trace.sites.size() && trace.sites[call.site].name.api.empty();
  if (!is_line || is_last || !next->is_intervention) return call.enter;
  return next->thread == call.thread && next->site == call.site ? next->exit : call.enter;
}

class Matcher {
 public:
  Matcher(const Trace& passing, const Trace& failing, bool plan_is_passing,
          const std::vector<std::string>& wrappers) {
    order_.wrappers = Wrappers({&passing, &failing}, wrappers);
    order_.passing = &passing;
    order_.failing = &failing;
    order_.plan_is_passing = plan_is_passing;
  }

  CallOrder operator()() {
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
    const TracedCall* passing = nullptr;
    const TracedCall* failing = nullptr;
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
                 const TracedCall* Call::*side) {
    std::vector<uint32_t> sites;
    for (const TracedSite& site : trace.sites)
      sites.push_back(sites_.try_emplace(to_string(site.name), static_cast<uint32_t>(sites_.size()))
                          .first->second);
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> visits;
    for (const TracedCall& call : trace.calls) {
      if (call.is_intervention || call.thread >= threads.size() || call.site >= sites.size())
        continue;
      const uint32_t thread = threads[call.thread], site = sites[call.site];
      const auto [known, is_new] =
          numbers_.try_emplace({thread, site, ++visits[{thread, site}]}, calls_.size());
      if (is_new) calls_.push_back({thread, nullptr, nullptr});
      calls_[known->second].*side = &call;
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
    // Whoever asks for a lock first mostly gets it first: one point says enough.
    const bool gave_up = call.failing && call.failing->timed_out;
    if (order_.group_traits_of(point) & protocol::group_locks && !gave_up) return;
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
    for (const TracedCall& call : order_.with_plan().calls) {
      if (!call.is_intervention || call.thread >= numbers.size()) continue;
      OrderedThread& thread = order_.threads[numbers[call.thread]];
      thread.late_from = std::min(thread.late_from.value_or(call.enter), call.enter);
      thread.late_to = std::max(thread.late_to.value_or(call.exit), call.exit);
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

  // Where nothing was captured, it is the first thread of the first process whose status says so.
  void find_divergence() {
    if (order_.passing->threads.empty() || order_.failing->threads.empty()) return;
    const OrderedThread& thread = order_.threads[order_.failing_thread().value_or(0)];
    if (thread.passing == no_index || thread.failing == no_index || thread.late_from) return;
    const Trace &passing = *order_.passing, &failing = *order_.failing;
    order_.divergence = order_.failure
                            ? first_error(passing, thread.passing, failing, thread.failing)
                            : divergence(passing, thread.passing, failing, thread.failing);
  }

  CallOrder order_;
  std::vector<uint32_t> passing_threads_, failing_threads_;  // their numbers in the order
  std::map<std::pair<std::string, int>, uint32_t> names_;
  std::unordered_map<std::string, uint32_t> sites_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, size_t> numbers_;  // thread, site, visit
  std::vector<Call> calls_;
};

}  // namespace

std::optional<uint32_t> CallOrder::failing_thread() const {
  if (failure) return points[*failure].thread;
  return divergence ? std::optional<uint32_t>(0) : std::nullopt;
}

Duration CallOrder::decided_by() const {
  const Duration failed = failure ? *points[*failure].failing_at : Duration::max();
  return std::min(failed, divergence.value_or(failed));
}

const TracedSite* CallOrder::site_of(const Point& point) const {
  if (point.passing && point.passing->site < passing->sites.size())
    return &passing->sites[point.passing->site];
  if (point.failing && point.failing->site < failing->sites.size())
    return &failing->sites[point.failing->site];
  return nullptr;
}

std::string CallOrder::who(const Point& point) const {
  const OrderedThread& thread = threads[point.thread];
  return thread.passing != no_index ? who_is(*passing, thread.passing)
                                    : who_is(*failing, thread.failing);
}

uint16_t CallOrder::traits_of(const Point& point) const {
  const TracedSite* site = site_of(point);
  return site ? api_traits(*site) : 0;
}

uint16_t CallOrder::group_traits_of(const Point& point) const {
  const TracedSite* site = site_of(point);
  return site ? group_traits(*site) : 0;
}

CallOrder order_calls(const Trace& passing, const Trace& failing, bool plan_is_passing,
                      const std::vector<std::string>& wrappers) {
  return Matcher(passing, failing, plan_is_passing, wrappers)();
}

namespace {

int sign_of(int32_t result) {
  return result < 0 ? -1 : result > 0;
}

struct Call {
  std::string site;
  const TracedCall* call = nullptr;
};

std::vector<Call> calls_of(const Trace& trace, uint32_t thread) {
  std::vector<Call> calls;
  for (const TracedCall& call : trace.calls)
    if (call.thread == thread && !call.is_intervention && call.site < trace.sites.size())
      calls.push_back({to_string(trace.sites[call.site].name), &call});
  return calls;
}

// A loop that goes round more often is not another path: the last visit of a site represents it.
std::map<std::string, const TracedCall*> last_calls(const std::vector<Call>& calls) {
  std::map<std::string, const TracedCall*> last;
  for (const Call& call : calls) last[call.site] = call.call;
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
        take(failing_.at(*shared)->exit);  // and then it took another path
    }
  }

  std::optional<Duration> first() const { return first_; }

 private:
  void compare(const Call& call) {
    const auto other = passing_.find(call.site);
    if (other == passing_.end()) return take(call.call->enter);
    if (call.call != failing_.at(call.site)) return;
    if (sign_of(call.call->result) != sign_of(other->second->result) ||
        call.call->timed_out != other->second->timed_out)
      take(call.call->exit);
  }

  void take(Duration at) { first_ = std::min(first_.value_or(at), at); }

  std::map<std::string, const TracedCall*> passing_, failing_;
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
  for (const auto& [site, call] : last_calls(calls_of(failing, failing_thread))) {
    const auto other = before.find(site);
    if (call->result >= 0 || other == before.end() || other->second->result < 0) continue;
    first = std::min(first.value_or(call->exit), call->exit);
  }
  return first;
}

uint32_t process_of(const CallOrder& order, const Point& point) {
  const OrderedThread& thread = order.threads[point.thread];
  const Trace& trace = thread.failing != no_index ? *order.failing : *order.passing;
  const uint32_t number = thread.failing != no_index ? thread.failing : thread.passing;
  return number < trace.threads.size() ? trace.threads[number].process : no_index;
}

bool are_about_one_object(const CallOrder& order, size_t one, size_t other) {
  const Point &a = order.points[one], &b = order.points[other];
  const TracedCall* first = a.passing ? a.passing : a.failing;
  const TracedCall* second = b.passing ? b.passing : b.failing;
  if (!first || !second || !a.passing != !b.passing) return false;
  return first->object != 0 && first->object == second->object &&
         process_of(order, a) == process_of(order, b);
}

namespace {

constexpr size_t most_late_points = 500;
constexpr size_t most_other_points = 4000;

class PairSearch {
 public:
  explicit PairSearch(const CallOrder& order) : order_(order) {
    for (size_t i = 0; i < order_.points.size(); ++i) sort_in(i);
    keep_earliest(late_, most_late_points);
    keep_latest(others_, most_other_points);
    passing_times_.resize(order_.threads.size());
    failing_times_.resize(order_.threads.size());
    for (const Point& point : order_.points) {
      if (point.passing_from) passing_times_[point.thread].push_back(*point.passing_from);
      if (point.failing_at) failing_times_[point.thread].push_back(*point.failing_at);
    }
    for (auto* all : {&passing_times_, &failing_times_})
      for (auto& times : *all) std::ranges::sort(times);
  }

  std::optional<PointPair> operator()() {
    for (const size_t late : late_)
      for (const size_t other : others_)
        order_.plan_is_passing ? consider(other, late) : consider(late, other);
    return best_;
  }

  std::optional<PointPair> operator()(size_t first) {
    for (const size_t other : others_) consider(first, other);
    return best_;
  }

 private:
  std::optional<Duration> plan_time(const Point& point) const {
    return order_.plan_is_passing ? point.passing_from : point.failing_at;
  }

  // A point that the run under the plan never reached is late too.
  void sort_in(size_t number) {
    const Point& point = order_.points[number];
    const auto& from = order_.threads[point.thread].late_from;
    const auto at = plan_time(point);
    if (from && (!at || *at >= *from)) late_.push_back(number);
    others_.push_back(number);
  }

  void keep_earliest(std::vector<size_t>& numbers, size_t most) const {
    std::ranges::stable_sort(numbers, {}, [&](size_t number) {
      return plan_time(order_.points[number]).value_or(Duration::max());
    });
    numbers.resize(std::min(numbers.size(), most));
  }

  void keep_latest(std::vector<size_t>& numbers, size_t most) const {
    const Duration end = order_.decided_by();
    std::erase_if(numbers, [&](size_t number) {  // under a plan that helps, the first come later
      return !order_.plan_is_passing && order_.points[number].failing_at.value_or(Duration{}) > end;
    });
    std::ranges::stable_sort(numbers, std::greater(), [&](size_t number) {
      return order_.points[number].failing_at.value_or(Duration{});
    });
    numbers.resize(std::min(numbers.size(), most));
  }

  bool is_flipped(const Point& first, const Point& second) const {
    if (!first.passing_from || !second.passing_to || *first.passing_from >= *second.passing_to)
      return false;
    if (!second.failing_at || *second.failing_at > order_.decided_by()) return false;
    if (first.failing_at && *first.failing_at <= *second.failing_at) return false;
    const auto& from = order_.threads[first.thread].late_from;
    return order_.plan_is_passing || (from && *from <= *second.failing_at);
  }

  bool is_unlock(const Point& point) const {
    const TracedSite* site = order_.site_of(point);
    return site && unflake::is_unlock(*site);
  }

  bool is_lock(const Point& point) const {
    return order_.group_traits_of(point) & protocol::group_locks;
  }

  // What says no more than the call before it.
  bool says_little(const Point& point) const {
    return order_.group_traits_of(point) & protocol::group_looks || is_unlock(point);
  }

  // The lock came too late for the one who had waited long enough.
  bool kept_lock(const Point& first, const Point& second) const {
    return is_unlock(first) && is_lock(second) && second.kind == Point::Kind::end;
  }

  // One lets the other go on. A mutex does that for everybody.
  bool hands_over(const Point& first, const Point& second) const {
    const auto wakes = [&](const Point& from, const Point& to) {
      return order_.traits_of(from) & protocol::api_wakes &&
             order_.traits_of(to) & protocol::api_wait;
    };
    return !is_lock(first) && (wakes(first, second) || wakes(second, first));
  }

  // A delay at a line of code was needed because no call is near what comes too late.
  bool is_late_line(const Point& point) const {
    const TracedSite* site = order_.site_of(point);
    return site && site->name.api.empty();
  }

  // Nobody overtakes a thread that is not late any more, except by chance.
  bool came_after_delay(const Point& first, const Point& second) const {
    const auto& to = order_.threads[first.thread].late_to;
    return !order_.plan_is_passing && to && *second.failing_at > *to;
  }

  static int between(const std::vector<Duration>& times, Duration from, Duration to) {
    return static_cast<int>(std::ranges::lower_bound(times, to) -
                            std::ranges::upper_bound(times, from));
  }

  // The object that both are about decides first, then how near to the failure it happened.
  int score(const Point& first, const Point& second, bool same_object) const {
    int score = same_object ? 40 : 0;
    const bool kept = same_object && kept_lock(first, second);
    if (kept || (same_object && hands_over(first, second))) score += 15;
    if (is_late_line(first)) score += 30;
    if (second.kind == Point::Kind::failure) score += 20;
    if (order_.failing_thread() == second.thread) score += 10;
    if (first.kind == Point::Kind::thread_end) score -= 5;
    if (came_after_delay(first, second)) score -= 15;
    for (const Point* point : {&first, &second})
      if (says_little(*point) && !kept) score -= 25;
    const Duration end = order_.decided_by();
    score -= std::min(20, between(failing_times_[second.thread], *second.failing_at, end));
    score -= std::min(
        10, between(passing_times_[first.thread], *first.passing_from, *second.passing_to));
    return score;
  }

  void consider(size_t first, size_t second) {
    const Point &one = order_.points[first], &two = order_.points[second];
    if (one.thread == two.thread || !is_flipped(one, two)) return;
    const bool same_object = are_about_one_object(order_, first, second);
    const int points = score(one, two, same_object);
    if (best_ && points <= best_score_) return;
    best_ = PointPair{first, second, same_object};
    best_score_ = points;
  }

  const CallOrder& order_;
  std::vector<size_t> late_, others_;
  std::vector<std::vector<Duration>> passing_times_, failing_times_;  // by thread
  std::optional<PointPair> best_;
  int best_score_ = 0;
};

}  // namespace

std::optional<PointPair> flipped_pair(const CallOrder& order) {
  return PairSearch(order)();
}

std::optional<PointPair> flipped_pair(const CallOrder& order, size_t first) {
  return PairSearch(order)(first);
}

}  // namespace unflake
