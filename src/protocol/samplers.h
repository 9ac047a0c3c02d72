#pragma once

#include <stddef.h>
#include <stdint.h>

// Who goes on at a switch point of a controlled run. Pure, and free of everything but numbers: the
// agent uses it inside of tests.
namespace unflake::protocol {

enum class SamplerKind : uint32_t {
  stay = 0,
  random_walk = 1,
  pct = 2,
  pos = 3,
  surw = 4,
};

inline constexpr uint32_t most_scheduled_threads = 16384;
inline constexpr uint32_t deepest_pct = 16;

// Random numbers that are the same everywhere: splitmix64.
class Dice {
 public:
  Dice() = default;
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t word = state_ += 0x9e3779b97f4a7c15;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
  }
  // From 0 to `count` - 1, each as likely; `count` is not 0.
  uint64_t below(uint64_t count) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * count) >> 64);
  }

 private:
  uint64_t state_;
};

// What a thread is about to do.
struct PendingStep {
  uint64_t object;  // 0: nothing that another thread could touch
  bool writes;      // else it only reads
};

inline bool conflict(const PendingStep& one, const PendingStep& other) {
  return one.object != 0 && one.object == other.object && (one.writes || other.writes);
}

struct SamplerPlan {
  SamplerKind kind;
  uint64_t seed;
  uint32_t depth;            // of pct
  uint64_t length;           // switch points to expect; 0: not known
  const uint64_t* selected;  // of surw: objects whose steps count; none: all
  uint32_t selected_count;
  const uint64_t* remaining;  // of surw: how many of those each thread will make
  uint32_t remaining_count;
};

class Sampler {
 public:
  void begin(const SamplerPlan& plan) {
    plan_ = plan;
    dice_ = Dice(plan.seed * 0x2545f4914f6cdd1d);
    known_ = points_ = in_a_row_ = since_intent_ = 0;
    lowest_ = least_of_changes;
    intent_ = last_ = no_thread;
    if (plan_.depth > deepest_pct) plan_.depth = deepest_pct;
    const uint64_t length = plan.length > 0 ? plan.length : usual_length;
    for (uint64_t& change : changes_) change = dice_.below(length);
    exits_ = 0;
    exits_late_ = true;
  }

  // Where the plan's lists are for the process that uses the sampler now.
  void find_lists(const uint64_t* selected, const uint64_t* remaining) {
    plan_.selected = selected;
    plan_.remaining = remaining;
  }

  // To be called for every step of a thread before the choice in which it may take part. Threads
  // are numbered from 0, and a new one has the next number.
  void announce(uint32_t thread, const PendingStep& step) {
    if (thread >= most_scheduled_threads) return;
    meet_up_to(thread);
    threads_[thread].step = step;
    if (plan_.kind == SamplerKind::pos) threads_[thread].priority = dice_.next();
  }

  // Whether the exit of the process comes when nobody else can go on, as in most runs. As one
  // choice among others it would cut them short.
  void announce_exit() {
    exits_late_ = plan_.kind == SamplerKind::stay || dice_.below(exits_++ == 0 ? 4 : 2) != 0;
  }
  bool exits_late() const { return exits_late_; }

  // One of `enabled`, which is in ascending order and not empty. `running` has just announced.
  uint32_t choose(const uint32_t* enabled, uint32_t count, uint32_t running) {
    ++points_;
    meet_up_to(enabled[count - 1]);
    switch (plan_.kind) {
      case SamplerKind::random_walk:
        return enabled[dice_.below(count)];
      case SamplerKind::pct:
        return choose_by_falling_priority(enabled, count);
      case SamplerKind::pos:
        return highest(enabled, count);
      case SamplerKind::surw:
        return choose_by_intent(enabled, count);
      case SamplerKind::stay:
        break;
    }
    for (uint32_t i = 0; i < count; ++i)
      if (enabled[i] == running) return running;
    return enabled[0];
  }

  // What the thread has announced happens now.
  void execute(uint32_t thread) {
    if (thread >= known_) return;
    const PendingStep step = threads_[thread].step;
    threads_[thread].step = {0, false};
    if (plan_.kind == SamplerKind::pos) draw_again_after(step);
    if (plan_.kind == SamplerKind::surw && is_selected(step)) count_selected(thread);
  }

  // The thread waits in a loop for what another one has to do.
  void demote(uint32_t thread) {
    if (thread < known_ && plan_.kind == SamplerKind::pct) fall(thread);
    if (plan_.kind == SamplerKind::surw && thread == intent_) intent_ = no_thread;
  }

  void end(uint32_t thread) {
    if (thread < known_) threads_[thread].ended = true;
    if (thread == intent_) intent_ = no_thread;
  }

 private:
  static constexpr uint32_t no_thread = 0xffffffff;
  static constexpr uint64_t usual_length = 100;
  static constexpr uint64_t least_of_lives = uint64_t{1} << 32;
  static constexpr uint64_t least_of_changes = uint64_t{1} << 31;
  static constexpr uint32_t longest_row = 2000;  // that one thread may be preferred
  static constexpr uint32_t longest_intent = 300;
  static constexpr uint64_t weight_of_step = 1000;

  struct Thread {
    PendingStep step;
    uint64_t priority;
    uint64_t remaining;
    bool ended;
  };

  void meet_up_to(uint32_t thread) {
    for (; known_ <= thread; ++known_) meet(known_);
  }
  void meet(uint32_t thread) {
    threads_[thread] = {};
    threads_[thread].priority = dice_.next() | least_of_lives;
    if (thread < plan_.remaining_count) threads_[thread].remaining = plan_.remaining[thread];
    if (plan_.kind == SamplerKind::surw && intent_ == 0 && thread > 0) pass_intent_to(thread);
  }

  // The first thread may have been drawn for what this one, which it has created, will do.
  void pass_intent_to(uint32_t created) {
    if (dice_.below(weight(0)) < threads_[created].remaining * weight_of_step) intent_ = created;
  }

  uint32_t highest(const uint32_t* enabled, uint32_t count) const {
    uint32_t best = enabled[0];
    for (uint32_t i = 1; i < count; ++i)
      if (threads_[enabled[i]].priority > threads_[best].priority) best = enabled[i];
    return best;
  }

  void fall(uint32_t thread) { threads_[thread].priority = --lowest_; }

  // Every change point has a rank of its own below all lives: who falls first need not stay above
  // who falls later. Without that, some bugs of this depth would never be found.
  void fall_at_change_points(uint32_t thread) {
    for (uint32_t i = 0; i + 1 < plan_.depth; ++i)
      if (changes_[i] == points_ - 1) threads_[thread].priority = least_of_changes + i;
  }

  // Whoever is always preferred may wait for one who never is: it falls too, after a long while.
  uint32_t choose_by_falling_priority(const uint32_t* enabled, uint32_t count) {
    const uint32_t best = highest(enabled, count);
    in_a_row_ = best == last_ ? in_a_row_ + 1 : 0;
    fall_at_change_points(best);
    if (in_a_row_ > longest_row) {
      in_a_row_ = 0;
      fall(best);
    }
    return last_ = highest(enabled, count);
  }

  void draw_again_after(const PendingStep& step) {
    for (uint32_t i = 0; i < known_; ++i)
      if (conflict(threads_[i].step, step)) threads_[i].priority = dice_.next();
  }

  bool is_selected(const PendingStep& step) const {
    if (step.object == 0 || plan_.selected_count == 0) return step.object != 0;
    for (uint32_t i = 0; i < plan_.selected_count; ++i)
      if (plan_.selected[i] == step.object) return true;
    return false;
  }

  void count_selected(uint32_t thread) {
    if (threads_[thread].remaining > 0) --threads_[thread].remaining;
    intent_ = no_thread;
  }

  // What threads will do that are not there yet is with the first one, which will create them. A
  // thread of which nothing more is expected may come all the same.
  uint64_t weight(uint32_t thread) const {
    uint64_t left = threads_[thread].remaining;
    if (thread == 0)
      for (uint32_t i = known_; i < plan_.remaining_count; ++i) left += plan_.remaining[i];
    return left * weight_of_step + 1;
  }

  template <class Use>
  void for_each_living(Use use) const {
    for (uint32_t i = 0; i < known_; ++i)
      if (!threads_[i].ended) use(i);
  }

  void draw_intent() {
    uint64_t all = 0;
    for_each_living([&](uint32_t thread) { all += weight(thread); });
    if (all > 0) draw_intent(dice_.below(all));
  }
  void draw_intent(uint64_t drawn) {
    intent_ = no_thread;
    since_intent_ = 0;
    for_each_living([&](uint32_t thread) {
      const uint64_t own = weight(thread);
      if (intent_ == no_thread && drawn < own) intent_ = thread;
      drawn -= drawn < own ? drawn : own;
    });
  }

  // All go on freely up to their next selected step, and only the intended one beyond it. One that
  // cannot get there is given up.
  uint32_t choose_by_intent(const uint32_t* enabled, uint32_t count) {
    if (intent_ == no_thread || ++since_intent_ > longest_intent) draw_intent();
    uint32_t free_ones = 0;
    for (uint32_t i = 0; i < count; ++i) free_ones += may_go(enabled[i]);
    if (free_ones == 0) return intend_one_of(enabled, count);
    uint64_t nth = dice_.below(free_ones);
    for (uint32_t i = 0; i < count; ++i)
      if (may_go(enabled[i]) && nth-- == 0) return enabled[i];
    return enabled[0];
  }

  bool may_go(uint32_t thread) const {
    return thread == intent_ || !is_selected(threads_[thread].step);
  }

  uint32_t intend_one_of(const uint32_t* enabled, uint32_t count) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; ++i) all += weight(enabled[i]);
    uint64_t drawn = dice_.below(all);
    uint32_t i = 0;
    for (; i + 1 < count && drawn >= weight(enabled[i]); ++i) drawn -= weight(enabled[i]);
    since_intent_ = 0;
    return intent_ = enabled[i];
  }

  // All of it begins with begin(): the agent has it in memory that costs nothing until it is used.
  SamplerPlan plan_;
  Dice dice_;
  uint64_t points_;
  uint64_t lowest_;
  uint64_t changes_[deepest_pct];
  uint32_t known_;
  uint32_t last_;
  uint32_t in_a_row_;
  uint32_t intent_;
  uint32_t since_intent_;
  uint32_t exits_;  // that were announced: of main, and behind the last destructor
  bool exits_late_;
  Thread threads_[most_scheduled_threads];
};

}  // namespace unflake::protocol
