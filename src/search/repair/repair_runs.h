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
  std::optional<SiteName> printed_at{};  // the line of a check that only prints its failure

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

  // Makes the runs of the search under control from now on, where being late takes no time, if the
  // test does there what it does on free cores and goes the same way each time. Runs whose numbers
  // are told (`confirm`, `baseline`) and those on a scarce machine stay free.
  bool go_under_control();
  bool is_under_control() const { return is_under_control_; }
  void leave_control() { is_under_control_ = false; }

  Run run(const Trial& trial, Purpose purpose = Purpose::candidate);
  // Most of up to three runs, where one says little because the test is noisy.
  End most_of(const Trial& trial);
  bool fails_every_time(const Trial& trial);  // a few
  // How many failures in a row are no accident, by runs in which nobody is late: a machine may be
  // busier now than when the failure was recorded.
  int to_be_sure();
  // The first one that ends so, with its calls and stacks recorded and lines watched.
  std::optional<ExperimentResult> record(Trial trial, RepairLines* lines, End wanted);

  void say(const std::string& text) { runner_.teller().say(text); }

 private:
  bool may_be_controlled(const Trial& trial, Purpose purpose) const;
  bool is_repeatable(const Trial& trial, End wanted);
  Run make(const Trial& trial, Purpose purpose);

  TrialRunner& runner_;
  FailingTest test_;
  bool is_under_control_ = false;
  int to_be_sure_ = 0;  // not known yet
};

// A passing and a failing run of the test, with its lines watched: what a search for a repair looks
// at.
class RecordedRuns {
 public:
  using Compare = std::function<std::vector<SiteName>(const ExperimentResult& passing,
                                                      const ExperimentResult& failing)>;
  RecordedRuns(RepairRuns& runs, const Compare& compare) : runs_(runs), compare_(compare) {}

  // False: they could not be made, and the report says why.
  bool operator()(RepairReport& report);

  bool has_both() const { return failing_ && passing_ && lines_; }
  const ExperimentResult& failing() const { return *failing_; }
  const ExperimentResult& passing() const { return *passing_; }
  const RepairLines& lines() const { return *lines_; }
  // By whoever compares the two.
  const std::vector<SiteName>& named_barriers() const { return named_barriers_; }

 private:
  void replace_order(RepairReport& report);
  void shorten_delays();
  bool missing(const std::string& what, RepairReport& report);

  RepairRuns& runs_;
  const Compare& compare_;
  std::optional<RepairLines> lines_;
  std::optional<ExperimentResult> failing_, passing_;
  std::vector<SiteName> named_barriers_;
};

bool has_holds(const Plan& plan);
// A cycle of threads that each wait for what the next one holds, in words; empty: there is none.
std::string lock_cycle(const Trace& trace);

// What the holds from this intervention of the plan on did.
HoldsSeen holds_in(const Plan& plan, size_t from, const ExperimentResult& result);

}  // namespace unflake
