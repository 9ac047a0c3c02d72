#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "run/executor.h"

namespace unflake {

// A simulated world with a truth that a test knows: outcomes come from a function, time passes only
// as runs do.
class MockExecutor : public Executor {
 public:
  // How the nth run (from 1, counted over the whole executor) of an experiment goes.
  using Truth = std::function<Outcome(const Experiment& experiment, int nth)>;
  // The same, with all that a run reports.
  using FullTruth = std::function<ExperimentResult(const Experiment& experiment, int nth)>;

  explicit MockExecutor(Truth truth, size_t slots = 1);
  explicit MockExecutor(FullTruth truth, size_t slots = 1)
      : truth_(std::move(truth)), slots_(slots) {}

  void allow_queue() { queue_allowed_ = true; }

  size_t slots() const override { return slots_; }
  size_t free_slots() const override { return slots_ - running_.size(); }
  size_t queue_room() const override {
    return queue_allowed_ ? running_.size() - queued_.size() : 0;
  }
  Ticket start(const Experiment& experiment) override;
  Wakeup wait(std::optional<Duration> at_most) override;
  void cancel_all() override;
  Duration elapsed() const override { return now_; }

  // After `waits` more, wait() wakes up with this instead of a finished run.
  void interrupt_after(int waits, Wakeup wakeup) { interrupts_.push_back({waits, wakeup}); }

  const std::vector<Experiment>& started() const { return started_; }
  size_t most_at_once() const { return most_at_once_; }

 private:
  struct Running {
    Ticket ticket;
    Duration ends;
    ExperimentResult result;
  };
  struct Planned {
    int waits;
    Wakeup wakeup;
  };

  FullTruth truth_;
  size_t slots_;
  Duration now_{};
  Ticket last_ticket_ = 0;
  size_t most_at_once_ = 0;
  bool queue_allowed_ = false;
  std::vector<Running> running_;
  std::deque<Running> queued_;  // `ends` is how long they take
  std::vector<Experiment> started_;
  std::deque<Planned> interrupts_;
};

}  // namespace unflake
