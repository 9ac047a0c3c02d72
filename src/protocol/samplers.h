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

struct SampledThread {
  PendingStep step;
  uint64_t priority;
  uint64_t remaining;  // of surw: steps that count and that it will still make
  bool ended;
};

// What every kind of sampler goes by. Threads are numbered from 0, and a new one has the next
// number.
struct SampledRun {
  SamplerPlan plan;
  Dice dice;
  uint32_t known;  // threads
  SampledThread threads[most_scheduled_threads];
};

// Of surw: the one thread that may take a step that counts. All others go on freely up to their
// next one.
class Intent {
 public:
  void begin() {
    thread_ = no_thread;
    since_ = 0;
  }

  // The first thread may have been drawn for what this one, which it has created, will do.
  void meet(SampledRun& run, uint32_t created) {
    if (thread_ != 0 || created == 0) return;
    if (run.dice.below(weight(run, 0)) < run.threads[created].remaining * weight_of_step)
      thread_ = created;
  }

  // One that cannot get to its step is given up.
  uint32_t choose(SampledRun& run, const uint32_t* enabled, uint32_t count) {
    if (thread_ == no_thread || ++since_ > longest) draw(run);
    uint32_t free_ones = 0;
    for (uint32_t i = 0; i < count; ++i) free_ones += may_go(run, enabled[i]);
    if (free_ones == 0) return draw_one_of(run, enabled, count);
    uint64_t nth = run.dice.below(free_ones);
    for (uint32_t i = 0; i < count; ++i)
      if (may_go(run, enabled[i]) && nth-- == 0) return enabled[i];
    return enabled[0];
  }

  void execute(SampledRun& run, uint32_t thread, const PendingStep& step) {
    if (!counts(run.plan, step)) return;
    if (run.threads[thread].remaining > 0) --run.threads[thread].remaining;
    thread_ = no_thread;
  }

  void give_up(uint32_t thread) {
    if (thread == thread_) thread_ = no_thread;
  }

 private:
  static constexpr uint32_t no_thread = 0xffffffff;
  static constexpr uint32_t longest = 300;
  static constexpr uint64_t weight_of_step = 1000;

  static bool counts(const SamplerPlan& plan, const PendingStep& step) {
    if (step.object == 0 || plan.selected_count == 0) return step.object != 0;
    for (uint32_t i = 0; i < plan.selected_count; ++i)
      if (plan.selected[i] == step.object) return true;
    return false;
  }

  bool may_go(const SampledRun& run, uint32_t thread) const {
    return thread == thread_ || !counts(run.plan, run.threads[thread].step);
  }

  // What threads will do that are not there yet is with the first one, which will create them. A
  // thread of which nothing more is expected may come all the same.
  static uint64_t weight(const SampledRun& run, uint32_t thread) {
    uint64_t left = run.threads[thread].remaining;
    if (thread == 0)
      for (uint32_t i = run.known; i < run.plan.remaining_count; ++i) left += run.plan.remaining[i];
    return left * weight_of_step + 1;
  }

  template <class Use>
  static void for_each_living(const SampledRun& run, Use use) {
    for (uint32_t i = 0; i < run.known; ++i)
      if (!run.threads[i].ended) use(i);
  }

  void draw(SampledRun& run) {
    uint64_t all = 0;
    for_each_living(run, [&](uint32_t thread) { all += weight(run, thread); });
    if (all == 0) return;
    uint64_t drawn = run.dice.below(all);
    begin();
    for_each_living(run, [&](uint32_t thread) {
      const uint64_t own = weight(run, thread);
      if (thread_ == no_thread && drawn < own) thread_ = thread;
      drawn -= drawn < own ? drawn : own;
    });
  }

  uint32_t draw_one_of(SampledRun& run, const uint32_t* enabled, uint32_t count) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; ++i) all += weight(run, enabled[i]);
    uint64_t drawn = run.dice.below(all);
    uint32_t i = 0;
    for (; i + 1 < count && drawn >= weight(run, enabled[i]); ++i) drawn -= weight(run, enabled[i]);
    since_ = 0;
    return thread_ = enabled[i];
  }

  uint32_t thread_;
  uint32_t since_;  // it was drawn: choices
};

class Sampler {
 public:
  void begin(const SamplerPlan& plan) {
    run_.plan = plan;
    run_.dice = Dice(plan.seed * 0x2545f4914f6cdd1d);
    run_.known = points_ = in_a_row_ = 0;
    lowest_ = least_of_changes;
    last_ = no_thread;
    intent_.begin();
    if (run_.plan.depth > deepest_pct) run_.plan.depth = deepest_pct;
    const uint64_t length = plan.length > 0 ? plan.length : usual_length;
    for (uint64_t& change : changes_) change = run_.dice.below(length);
    exits_ = 0;
    exits_late_ = true;
  }

  // Where the plan's lists are for the process that uses the sampler now.
  void find_lists(const uint64_t* selected, const uint64_t* remaining) {
    run_.plan.selected = selected;
    run_.plan.remaining = remaining;
  }

  // To be called for every step of a thread before the choice in which it may take part.
  void announce(uint32_t thread, const PendingStep& step) {
    if (thread >= most_scheduled_threads) return;
    meet_up_to(thread);
    run_.threads[thread].step = step;
    if (run_.plan.kind == SamplerKind::pos) run_.threads[thread].priority = run_.dice.next();
  }

  // Whether the exit of the process comes when nobody else can go on, as in most runs. As one
  // choice among others it would cut them short.
  void announce_exit() {
    exits_late_ =
        run_.plan.kind == SamplerKind::stay || run_.dice.below(exits_++ == 0 ? 4 : 2) != 0;
  }
  bool exits_late() const { return exits_late_; }

  // One of `enabled`, which is in ascending order and not empty. `running` has just announced.
  uint32_t choose(const uint32_t* enabled, uint32_t count, uint32_t running) {
    ++points_;
    meet_up_to(enabled[count - 1]);
    switch (run_.plan.kind) {
      case SamplerKind::random_walk:
        return enabled[run_.dice.below(count)];
      case SamplerKind::pct:
        return choose_by_falling_priority(enabled, count);
      case SamplerKind::pos:
        return highest(enabled, count);
      case SamplerKind::surw:
        return intent_.choose(run_, enabled, count);
      case SamplerKind::stay:
        break;
    }
    for (uint32_t i = 0; i < count; ++i)
      if (enabled[i] == running) return running;
    return enabled[0];
  }

  // What the thread has announced happens now.
  void execute(uint32_t thread) {
    if (thread >= run_.known) return;
    const PendingStep step = run_.threads[thread].step;
    run_.threads[thread].step = {0, false};
    if (run_.plan.kind == SamplerKind::pos) draw_again_after(step);
    if (run_.plan.kind == SamplerKind::surw) intent_.execute(run_, thread, step);
  }

  // The thread waits in a loop for what another one has to do.
  void demote(uint32_t thread) {
    if (thread < run_.known && run_.plan.kind == SamplerKind::pct) fall(thread);
    if (run_.plan.kind == SamplerKind::surw) intent_.give_up(thread);
  }

  void end(uint32_t thread) {
    if (thread < run_.known) run_.threads[thread].ended = true;
    intent_.give_up(thread);
  }

 private:
  static constexpr uint32_t no_thread = 0xffffffff;
  static constexpr uint64_t usual_length = 100;
  static constexpr uint64_t least_of_lives = uint64_t{1} << 32;
  static constexpr uint64_t least_of_changes = uint64_t{1} << 31;
  static constexpr uint32_t longest_row = 2000;  // that one thread may be preferred

  void meet_up_to(uint32_t thread) {
    for (; run_.known <= thread; ++run_.known) meet(run_.known);
  }
  void meet(uint32_t thread) {
    run_.threads[thread] = {};
    run_.threads[thread].priority = run_.dice.next() | least_of_lives;
    if (thread < run_.plan.remaining_count)
      run_.threads[thread].remaining = run_.plan.remaining[thread];
    if (run_.plan.kind == SamplerKind::surw) intent_.meet(run_, thread);
  }

  uint32_t highest(const uint32_t* enabled, uint32_t count) const {
    uint32_t best = enabled[0];
    for (uint32_t i = 1; i < count; ++i)
      if (run_.threads[enabled[i]].priority > run_.threads[best].priority) best = enabled[i];
    return best;
  }

  void fall(uint32_t thread) { run_.threads[thread].priority = --lowest_; }

  // Every change point has a rank of its own below all lives: who falls first need not stay above
  // who falls later. Without that, some bugs of this depth would never be found.
  void fall_at_change_points(uint32_t thread) {
    for (uint32_t i = 0; i + 1 < run_.plan.depth; ++i)
      if (changes_[i] == points_ - 1) run_.threads[thread].priority = least_of_changes + i;
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
    for (uint32_t i = 0; i < run_.known; ++i)
      if (conflict(run_.threads[i].step, step)) run_.threads[i].priority = run_.dice.next();
  }

  // All of it begins with begin(): the agent has it in memory that costs nothing until it is used.
  Intent intent_;
  uint64_t points_;
  uint64_t lowest_;
  uint64_t changes_[deepest_pct];
  uint32_t last_;
  uint32_t in_a_row_;
  uint32_t exits_;  // that were announced: of main, and after the last destructor
  bool exits_late_;
  SampledRun run_;
};

}  // namespace unflake::protocol
