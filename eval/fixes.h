#pragma once

#include <string>
#include <vector>

#include "scores.h"
#include "surroundings.h"
#include "truth.h"

namespace unflake::eval {

// The section of docs/EVALUATION.md on claimed repairs begins with it.
constexpr const char* fixes_heading = "## Repairs that others claim";

// What is known about a patch of zoo/fixes; zoo/README.md describes the fields.
struct FixTruth {
  std::string name;
  std::string program;
  bool repairs = false;
  std::string kind;
  std::string why;
};

Result<std::vector<FixTruth>> read_fixes(const std::string& folder,
                                         const std::vector<std::string>& only);

struct JudgedFix {
  FixTruth truth;
  std::string verdict;  // of `unflake prove`; "failed" when there is none
  std::string why;
  int runs = 0;  // with the patch
  double seconds = 0;

  bool is_accepted() const { return verdict == "repaired"; }
};

// What `unflake prove --json` says.
JudgedFix judged_by(const FixTruth& truth, const std::string& output);

std::vector<Score> fix_scores(const std::vector<JudgedFix>& all);
std::string fixes_section(const std::vector<JudgedFix>& all,
                          const std::vector<std::string>& options, const Surroundings& where);

}  // namespace unflake::eval
