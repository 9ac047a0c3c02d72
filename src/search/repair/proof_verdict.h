#pragma once

#include <string>

#include "search/repair/proof_side.h"

namespace unflake {

// What the runs of a proof have shown besides their counts.
struct ProofEvidence {
  int recorded_after = 0;   // failures as recorded, with the patch, that a working machine can show
  std::string when;         // the first of them came
  std::string hollow;       // why the check is not made any more
  std::string others_fail;  // other tests of the program, with the patch alone
  std::string not_repeatable;
  std::string changed_check;    // its text; empty: the patch leaves it alone
  bool has_teeth = false;       // the changed check can fail
  bool check_is_known = false;  // passing runs come to it without the patch
  // Schedules under which it fails with the patch, and more time passes than lateness explains:
  // whether threads were that late or the test waits in vain, they do not say.
  int beyond_bound = 0;
};

// Whether the failure comes without the patch, and less often with it.
bool is_shown(const Proof& proof, int beyond_bound);

// Sets the verdict and, unless the patch was refuted, what it is not about.
void conclude(Proof& proof, const ProofEvidence& seen, const SideRuns& before,
              const SideRuns& after);

}  // namespace unflake
