#pragma once

#include "search/reproduce/hunt_options.h"
#include "search/reproduce/profile.h"

namespace unflake {

// What a hunt is after, and whether a run has shown it.
class Goal {
 public:
  Goal(const Wanted& wanted, const Profile& profile) : wanted_(wanted), profile_(profile) {}

  const Wanted& wanted() const { return wanted_; }
  // The test fails by itself in most runs, so that the search is for a plan under which it passes.
  bool is_inverted() const { return inverted_; }
  void invert() { inverted_ = true; }

  // The wanted failure. A test's own macros print and abort in their own way: then the failing line
  // is on the stack, or in what only failing runs print.
  bool shows_wanted(const ExperimentResult& result) const;
  bool is_reached(const ExperimentResult& result) const;
  // The same again as in a run with this signature; under a plan, only once it has fired.
  bool is_same(const Outcome& outcome, const std::string& signature) const;
  bool is_again(const Trial& trial, const std::string& signature,
                const ExperimentResult& result) const;

 private:
  const Wanted wanted_;
  const Profile& profile_;
  bool inverted_ = false;
};

}  // namespace unflake
