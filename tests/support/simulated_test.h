#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/mock_executor.h"

// A multi-threaded test program with a known truth, whose runs under a plan are computed instead of
// made: the same plan gives the same run, and no time passes.
namespace unflake::simulated {

// The variables of the program, all 0 at first, and the time since it began.
struct State {
  std::map<std::string, int> values;
  Duration now{};

  int& operator[](const std::string& name) { return values[name]; }
  bool is_set(const std::string& name) const {
    const auto found = values.find(name);
    return found != values.end() && found->second != 0;
  }
};

using Predicate = std::function<bool(const State&)>;

Predicate is_set(std::string name);

// "main", or the place that created it and a number: "pool.cc:31#2".
ThreadName thread_named(const std::string& text);

class Script;

struct Step {
  enum class Kind {
    work,
    change,
    check,
    enter,
    line,
    call,
    lock,
    unlock,
    sleep,
    create,
    join,
    signal,
    broadcast,
    wait,
    wait_for,
    post,
    acquire,
    arm
  };

  Kind kind = Kind::work;
  SiteName site{};  // of a check: where it stands
  Duration duration{};
  std::string object{};  // mutex, condition or semaphore
  std::string mutex{};   // of a wait
  Predicate predicate{};
  std::function<void(State&)> change{};
  const Script* thread = nullptr;
  bool is_fatal = false;   // a failed check ends the process with a signal
  std::string function{};  // that the step belongs to, when one was entered
};

// What one thread does, step by step. Places are written "queue.cc:57".
class Script {
 public:
  Script& work(Duration duration);
  Script& change(std::function<void(State&)> change);
  Script& set(const std::string& variable, int value = 1);
  // Fails the test, which goes on; or kills it, as a use of what is gone does.
  Script& check(const std::string& place, Predicate predicate);
  Script& crash_unless(const std::string& place, Predicate predicate);

  // Seen only by plans that look there. What follows belongs to the function.
  Script& enter(const std::string& function);
  Script& line(const std::string& place);

  Script& call(const std::string& place, const std::string& api);
  Script& lock(const std::string& place, const std::string& mutex);
  Script& unlock(const std::string& place, const std::string& mutex);
  // With a processor, a mutex to its users, it is over only when that is free.
  Script& sleep(const std::string& place, Duration duration, const std::string& processor = "");
  // Sleeps again and again until it holds.
  Script& poll(const std::string& place, Duration interval, Predicate predicate);
  // A timer: sets the variable "CONDITION is due" later, and wakes who waits for the condition.
  Script& arm(const std::string& place, const std::string& condition, Duration after);
  Script& create(const std::string& place, const Script& thread);
  // Until all threads that run the script have ended.
  Script& join(const std::string& place, const Script& thread);
  Script& signal(const std::string& place, const std::string& condition);
  Script& broadcast(const std::string& place, const std::string& condition);
  // With a predicate: not at all when it holds, else until it does. The mutex, if any, is free
  // meanwhile.
  Script& wait(const std::string& place, const std::string& condition, Predicate predicate = {},
               const std::string& mutex = "");
  // Sets the variable "CONDITION timed out".
  Script& wait_for(const std::string& place, const std::string& condition, Duration at_most,
                   Predicate predicate = {}, const std::string& mutex = "");
  Script& post(const std::string& place, const std::string& semaphore);
  Script& acquire(const std::string& place, const std::string& semaphore);

  Script& repeat(int times, const std::function<void(Script&)>& body);

  const std::vector<Step>& steps() const { return steps_; }

 private:
  Script& add(Step step);
  Script& add_call(Step::Kind kind, const std::string& place, const std::string& api, Step step);

  std::vector<Step> steps_;
  std::string function_;
};

struct Program {
  std::string name = "simulated_test";
  std::deque<Script> scripts = std::deque<Script>(1);  // of main, and of the threads that it starts
  Duration jitter{};                                   // work and sleeps take up to this much more
  double failure_rate = 0;  // of runs that fail by themselves, at "plain.cc:1"
  uint64_t seed = 1;
  bool bears_control = false;  // then a run under a schedule takes no time

  Script& main() { return scripts.front(); }
  Script& thread() { return scripts.emplace_back(); }
};

// One run. The nth of a program differs from the others only by jitter and plain failures.
ExperimentResult run(const Program& program, const Experiment& experiment, int nth = 1);

inline ExperimentResult under_control(ExperimentResult result) {
  auto trace = std::make_shared<Trace>(*result.trace);
  trace->controlled.emplace();
  trace->controlled->digest = 1;
  trace->controlled->virtual_time = result.process.duration;
  result.trace = trace;
  result.process.duration = std::chrono::milliseconds(2);
  return result;
}

// The program must outlive it.
inline MockExecutor executor_of(const Program& program, size_t slots = 1) {
  return MockExecutor(
      MockExecutor::FullTruth([&program](Experiment experiment, int nth) {
        const bool is_controlled = program.bears_control && experiment.plan.schedule;
        if (is_controlled) experiment.timeout = std::chrono::hours(24);  // time that nobody waits
        ExperimentResult result = run(program, experiment, nth);
        return is_controlled && result.trace ? under_control(std::move(result)) : result;
      }),
      slots);
}

std::shared_ptr<const unflake::Test> test_of(const Program& program);

}  // namespace unflake::simulated
