#pragma once

#include <string>
#include <vector>

#include "model/experiment.h"
#include "report/style.h"

namespace unflake {

// What the interventions of a plan did in all runs under it. Texts are how they are shown, one for
// each intervention.
class InterventionTotals {
 public:
  void add(const ExperimentResult& result);

  int runs() const { return runs_; }
  int failed() const { return failed_; }
  // Other than watches, which do nothing.
  bool any_fired(const std::vector<Intervention>& plan) const;
  const std::vector<TracedIntervention>& states() const { return states_; }

  std::string table(const std::vector<Intervention>& plan,
                    const std::vector<std::string>& texts) const;
  // A delay that never fired proves nothing, and must not look as if it did.
  std::string doubts(const std::vector<Intervention>& plan, const std::vector<std::string>& texts,
                     const Style& style) const;

 private:
  int runs_ = 0;
  int failed_ = 0;
  int failed_by_itself_ = 0;  // runs in which nothing fired
  std::vector<TracedIntervention> states_;
};

}  // namespace unflake
