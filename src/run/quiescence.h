#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "protocol/agent_protocol.h"
#include "run/launch.h"
#include "util/files.h"

namespace unflake {

// Whether a test can still go on, seen from outside: the kernel knows of every thread what it waits
// for, whether the agent has seen the call or not, and the calls that the test makes cost nothing
// for it.
//
// When all threads of all its processes wait for each other, a thread that the plan holds is
// released, the one that began last; when none is held, the test is in a deadlock. Whatever the
// world, a deadline or a signal could end is no such wait, nor is a call that is not known.
class QuiescenceWatch {
 public:
  // Children of this process that are none of the test's.
  using Others = std::function<std::set<pid_t>()>;
  QuiescenceWatch(const Launch& launch, Others others);

  // Until the next look, at most; -1: there is none.
  int milliseconds_to_look() const;

  // Whether the test is in a deadlock.
  bool look();

  // Who waits for whom in it, as far as the stacks tell.
  std::vector<ProcessResult::Waiting> waiting(const std::vector<ThreadAtEnd>& stacks) const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Waiter {
    pid_t pid = 0;
    pid_t tid = 0;
    long call = 0;
    std::array<uint64_t, 6> arguments{};
    uint64_t switches = 0;  // to other threads: the same as before: it has not run since
    bool is_held = false;
    bool operator==(const Waiter&) const = default;
  };
  using Waiters = std::vector<Waiter>;

  void read_held();
  const protocol::HeldThread* held_as(const Waiter& waiter) const;
  std::optional<Waiters> all_waiting(const std::vector<pid_t>& processes) const;
  bool add_waiters(pid_t pid, Waiters& all) const;
  bool is_quiet(bool is_any_held);
  void release_last_held();
  void plan_next_look(bool is_any_held);

  const Others others_;
  const bool holds_;
  const uint64_t offset_;
  UniqueFd memory_;
  protocol::Quiescence told_{};  // by the agents
  std::optional<Waiters> seen_;
  int same_looks_ = 0;
  std::chrono::milliseconds pause_;
  Clock::time_point next_look_;        // whether somebody is held
  Clock::time_point next_whole_look_;  // at all threads
};

}  // namespace unflake
