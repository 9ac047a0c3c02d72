#include <algorithm>

#include "explain/event_order.h"
#include "protocol/agent_protocol.h"

namespace unflake {
namespace {

constexpr size_t most_late_points = 500;
constexpr size_t most_other_points = 4000;

class PairSearch {
 public:
  explicit PairSearch(const EventOrder& order) : order_(order) {
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

  uint32_t process_of(const Point& point) const {
    const OrderedThread& thread = order_.threads[point.thread];
    return thread.passing < order_.passing->threads.size()
               ? order_.passing->threads[thread.passing].process
               : no_index;
  }

  bool are_about_one_object(const Point& a, const Point& b) const {
    const TracedEvent* one = a.passing ? a.passing : a.failing;
    const TracedEvent* two = b.passing ? b.passing : b.failing;
    if (!one || !two || !a.passing != !b.passing) return false;
    return one->object != 0 && one->object == two->object && process_of(a) == process_of(b);
  }

  bool is_unlock(const Point& point) const {
    const TracedSite* site = order_.site_of(point);
    return site && site->name.api.find("unlock") != std::string::npos;
  }

  // What tells no more than the call before it.
  bool says_little(const Point& point) const {
    const std::string_view group = order_.group_of(point);
    return group == "clock" || group == "yield" || group == "random" || is_unlock(point);
  }

  // The lock came too late for the one who had waited for it long enough.
  bool kept_lock(const Point& first, const Point& second) const {
    return is_unlock(first) && order_.group_of(second) == "lock" && second.kind == Point::Kind::end;
  }

  // One lets the other go on. A mutex does that for everybody.
  bool hands_over(const Point& first, const Point& second) const {
    const auto wakes = [&](const Point& from, const Point& to) {
      return order_.traits_of(from) & protocol::api_wakes &&
             order_.traits_of(to) & protocol::api_wait;
    };
    return order_.group_of(first) != "lock" && (wakes(first, second) || wakes(second, first));
  }

  // A delay at a line of code was needed because no call stands near what comes too late.
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
    const bool same_object = are_about_one_object(one, two);
    const int points = score(one, two, same_object);
    if (best_ && points <= best_score_) return;
    best_ = PointPair{first, second, same_object};
    best_score_ = points;
  }

  const EventOrder& order_;
  std::vector<size_t> late_, others_;
  std::vector<std::vector<Duration>> passing_times_, failing_times_;  // by thread
  std::optional<PointPair> best_;
  int best_score_ = 0;
};

}  // namespace

std::optional<PointPair> flipped_pair(const EventOrder& order) {
  return PairSearch(order)();
}

}  // namespace unflake
