#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/intervention_totals.h"
#include "report/style.h"
#include "repro/relocation.h"

namespace unflake {

// What came of the runs of a repro.
class ReplayResult {
 public:
  explicit ReplayResult(const Repro& repro) : repro_(repro) {}

  void add(const ExperimentResult& result, const CodeView& code);

  int as_recorded() const { return as_recorded_; }
  // Whether any run shows something: it was made late, and it ended by itself.
  bool says_something(const Plan& plan) const;

  std::string text(const Plan& plan, const Style& style) const;
  std::string json(const std::string& path, const Relocation& relocation,
                   const std::vector<CodeNote>& code_notes) const;

 private:
  struct Other {
    std::string headline;
    int runs = 0;
  };

  const Repro& repro_;
  InterventionTotals totals_;
  int as_recorded_ = 0;
  int passed_ = 0;
  int skipped_ = 0;
  std::map<std::string, Other> others_;  // by signature
};

}  // namespace unflake
