#pragma once

#include <functional>
#include <optional>
#include <string>

#include "search/repair/steps.h"
#include "search/trial/trial_runner.h"

namespace unflake {

// What a repair begins with.
struct FailingTest {
  Trial failing;  // under which it fails
  Trial passing;  // and under which it does not: one of the two has no plan
  std::function<bool(const Outcome&)> is_same;  // whether this is the failure
  Count by_itself;                              // how often it comes when nobody is late
  Duration timeout{};                           // of one run
  LinesOf lines;

  // Runs in which nobody is late show the failure, too.
  bool is_noisy() const { return by_itself.hits > 0; }
};

// What an enforced order did in one run.
struct HoldsSeen {
  uint64_t fired = 0, let_go = 0, impossible = 0;
  Duration waited{};
};

// Makes the runs of a search for a repair, and tells how they ended.
class RepairRuns {
 public:
  using Purpose = TrialRunner::Purpose;
  enum class End {
    passed,
    failed,     // with the failure that is to be repaired
    otherwise,  // with another one
    refused,    // no run can be made with this plan
    over,       // the search is: stopped, broken, or no time is left
  };
  struct Run {
    End end = End::over;
    ExperimentResult result;

    bool ended() const { return end != End::over; }
  };

  RepairRuns(TrialRunner& runner, FailingTest test) : runner_(runner), test_(std::move(test)) {}

  const FailingTest& test() const { return test_; }
  FailingTest& test() { return test_; }
  TrialRunner& runner() { return runner_; }
  bool is_over() const { return runner_.has_ended() || runner_.left() <= Duration{}; }

  Run run(const Trial& trial, Purpose purpose = Purpose::candidate);
  // Most of up to three runs, where one says little because the test is noisy.
  End most_of(const Trial& trial);
  // The first one that ends so, with its calls and stacks recorded and lines watched.
  std::optional<ExperimentResult> record(Trial trial, RepairLines* lines, End wanted);

  void say(const std::string& text) { runner_.teller().say(text); }

 private:
  TrialRunner& runner_;
  FailingTest test_;
};

// What the holds from this intervention of the plan on did.
HoldsSeen holds_in(const Plan& plan, size_t from, const ExperimentResult& result);

}  // namespace unflake
