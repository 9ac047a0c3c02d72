#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/mock_executor.h"

// A multi-threaded program with a known truth that is run under a schedule: one thread at a time,
// every decision recorded, as in the agent, and with the agent's samplers.
namespace unflake::simulated {

// What a thread sees between two switch points: the shared variables, and its own.
struct View {
  std::map<std::string, int>& shared;
  std::map<std::string, int>& own;
};

struct Operation {
  enum class Kind {
    read,
    write,
    lock,
    unlock,
    wait,
    reacquire,  // the second half of a wait
    signal,
    broadcast,
    spawn,
    join,
    sleep,
    wake,  // the second half of a sleep
    local,
    check,
    end,
  };
  Kind kind = Kind::local;
  SiteName site{};
  std::string object{};
  std::string mutex{};                 // of a wait
  size_t thread = 0;                   // of a spawn or a join
  Duration duration{};                 // of a sleep
  std::function<void(View)> effect{};  // of a read, a write, what is local
  std::function<bool(View)> holds{};   // of a check; a wait waits until it does
};

class ControlledScript {
 public:
  using Effect = std::function<void(View)>;
  using Condition = std::function<bool(View)>;

  // Into the thread's own variable of the same name.
  ControlledScript& read(const std::string& place, const std::string& variable);
  ControlledScript& write(const std::string& place, const std::string& variable, Effect effect);
  ControlledScript& set(const std::string& place, const std::string& variable, int value);
  ControlledScript& increment(const std::string& place, const std::string& variable);
  ControlledScript& lock(const std::string& place, const std::string& mutex);
  ControlledScript& unlock(const std::string& place, const std::string& mutex);
  // Without a condition once, else until it holds.
  ControlledScript& wait(const std::string& place, const std::string& condition_variable,
                         const std::string& mutex, Condition until = {});
  ControlledScript& signal(const std::string& place, const std::string& condition_variable);
  ControlledScript& spawn(const std::string& place, size_t thread);
  ControlledScript& join(const std::string& place, size_t thread);
  ControlledScript& sleep(const std::string& place, Duration duration);
  // No switch points.
  ControlledScript& local(Effect effect);
  ControlledScript& check(const std::string& place, Condition holds);

  const std::vector<Operation>& operations() const { return operations_; }

 private:
  ControlledScript& add(Operation operation, const std::string& place, const std::string& api);

  std::vector<Operation> operations_;
};

// The first script is main's. Threads are named by their script: a script is spawned once.
struct ControlledProgram {
  std::deque<ControlledScript> scripts = std::deque<ControlledScript>(1);
  std::string not_repeatable;          // the call because of which it is not, if any
  bool memory_needs_accesses = false;  // reads and writes are switch points only where a schedule
                                       // names them

  ControlledScript& main() { return scripts.front(); }
  size_t add_thread() {
    scripts.emplace_back();
    return scripts.size() - 1;
  }
};

ExperimentResult run_controlled(const ControlledProgram& program, const Schedule& schedule);

// All outcomes of all schedules with at most so many preemptions, by brute force: signatures, the
// empty one for a pass, "deadlock" for one.
struct AllOutcomes {
  std::map<std::string, uint64_t> schedules_with;  // by outcome
  uint64_t schedules = 0;
};
AllOutcomes all_outcomes(const ControlledProgram& program, int most_preemptions);

inline MockExecutor executor_of(const ControlledProgram& program, size_t slots = 1) {
  return MockExecutor(MockExecutor::FullTruth([&program](const Experiment& experiment, int) {
                        return run_controlled(program,
                                              experiment.plan.schedule.value_or(Schedule{}));
                      }),
                      slots);
}

// Programs that several tests use.
ControlledProgram lost_update(int threads = 2);     // an unlocked increment in each thread
ControlledProgram locked_updates(int threads = 2);  // the same under a lock: always right
ControlledProgram crossed_locks();                  // a deadlock of two threads
ControlledProgram half_reading(int writers = 1);    // a reader between two writes
ControlledProgram missed_signal();                  // a signal before its wait
ControlledProgram late_worker(Duration patience);   // main sleeps instead of waiting

}  // namespace unflake::simulated
