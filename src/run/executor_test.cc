#include "run/executor.h"

#include <gtest/gtest.h>

#include <deque>

namespace unflake {
namespace {

struct Scripted : Executor {
  std::deque<Wakeup> wakeups;
  int cancels = 0;

  size_t slots() const override { return 1; }
  size_t free_slots() const override { return 1; }
  Ticket start(const Experiment&) override { return 7; }
  Wakeup wait(std::optional<Duration>) override {
    Wakeup next = std::move(wakeups.front());
    wakeups.pop_front();
    return next;
  }
  void cancel_all() override { ++cancels; }
  Duration elapsed() const override { return {}; }
};

Finished passed() {
  Finished finished;
  finished.ticket = 7;
  finished.result.process.end = ProcessResult::End::exited;
  return finished;
}

TEST(Executor, Runs_until_its_experiment_has_ended) {
  Scripted executor;
  executor.wakeups = {Tick{}, StatusAsked{}, passed()};
  const auto result = executor.run({});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->process.end, ProcessResult::End::exited);
  EXPECT_EQ(executor.cancels, 0);
}

TEST(Executor, Does_not_lose_a_stop_that_comes_as_the_run_ends) {
  Scripted executor;
  executor.wakeups = {Stopped{}, passed()};
  const auto result = executor.run({});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->process.end, ProcessResult::End::cancelled);
  EXPECT_EQ(executor.cancels, 1);
}

}  // namespace
}  // namespace unflake
