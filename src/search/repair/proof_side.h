#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "search/repair/proof.h"
#include "search/reproduce/findings.h"

namespace unflake {

enum class Shown { pass, recorded, other, skipped };

// The runs of one build, and what they have shown.
struct SideRuns {
  SideRuns(ProofSide& of, Duration budget)
      : side(of), runner(of.executor, of.test, of.events, budget) {
    runner.aim_at({[this](const Trial&, const ExperimentResult& result) {
      return side.is_recorded(result.outcome);
    }});
  }

  // With `counts`, another failure is held against the patch; else it is only remembered.
  Shown judge(const ExperimentResult& result, bool counts);

  // It skips itself, which the other one does not.
  bool skips_alone(const SideRuns& other) const { return skipped_ > 0 && other.skipped_ == 0; }
  // That came more than once and that the other one never showed; empty: none.
  std::string new_failure(const SideRuns& other) const;
  std::vector<std::string> seen_once(const SideRuns& other) const;
  std::vector<std::string> far_failures() const;

  ProofSide& side;
  TrialRunner runner;
  Duration longest{};  // of the runs that ended by themselves

 private:
  struct Failing {
    int runs = 0;
    std::string headline;
  };
  std::map<std::string, Failing> others_, far_;  // by signature
  int skipped_ = 0;
};

// Which lateness a patched test is tried with, by what is known of how late it had to be.
class Doses {
 public:
  explicit Doses(const Repro& repro);

  bool has_delays() const { return has_delays_; }
  // What the delays of the recorded plan come to.
  void learn(Duration of_plan);
  // Of the recorded plan, but no more than what is several times as much as it takes: a search
  // begins with generous delays, and a hundred runs under one take long. Zero: not known.
  Duration of_plan() const { return std::min(of_plan_, std::min(bound(), generous())); }
  // That it takes to fail without the patch, as far as that is known.
  Duration needed() const { return slack_ > Duration{} ? slack_ : of_plan_; }
  // A machine that works is no later, unless the failure takes more anyway.
  Duration bound() const;
  // Near enough to what was needed that another failure under it is a new one.
  bool is_near(Duration lateness) const { return lateness <= generous(); }

  std::vector<Duration> others() const;
  std::vector<Duration> for_every_visit() const;
  Plan with_lateness(Plan plan, Duration lateness) const;

 private:
  Duration generous() const;

  bool has_delays_ = false;
  Duration overloaded_{}, slack_{}, of_plan_{};
};

// All tests of a program, once.
struct WholeRun {
  bool has_ended = false;
  bool recorded_failed = false;  // the test that the proof is about
  std::set<std::string> others;  // that failed
};
WholeRun run_whole_program(ProofSide& side, Duration timeout);

// A plan under which the wanted failure comes, with no more lateness than the bound.
std::optional<Found> search_anew(ProofSide& side, const HuntOptions& options, Duration bound);

// The same delays in every thread that the same place starts, whenever they come there.
Plan at_every_visit(Plan plan);

}  // namespace unflake
