#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scores.h"
#include "surroundings.h"
#include "truth.h"

namespace unflake::eval {

// The section of docs/EVALUATION.md on repairs begins with it.
constexpr const char* repairs_heading = "## Repairs";

// What `unflake repair` must say about a program.
enum class WantedRepair {
  none,    // it is not asked: nothing is flaky there
  repair,  // one place has to wait for another
  timing,  // it bounds a time
  defect,  // a deadlock of the code: no wait in the test repairs it
};
WantedRepair wanted_repair(const Truth& truth);

// What another search says of the same failure, without patches.
struct Compared {
  std::string method;
  bool is_ordered = false;
  bool ran_out = false;  // of time
  int runs = 0;
  double seconds = 0;
};

// What became of a program.
struct Repaired {
  Truth truth;
  std::string idiom;        // of the patch that was proven; empty: none was
  std::string diff;         // of it
  std::string why_not;      // there is none
  bool is_ordered = false;  // an order held in the running binary
  bool in_project = false;
  bool says_timing = false;
  bool says_deadlock = false;
  double seconds = 0;  // without the builds
  double build_seconds = 0;
  double reproduce_seconds = 0;
  double run_time = 1;  // with the patch / without
  int plain_runs = 0;   // with the patch applied and built again, afterwards
  int failed_runs = 0;  // of these
  bool hangs = false;   // at least one of these did not end
  std::optional<Compared> compared{};

  bool is_proven() const { return !idiom.empty(); }
  // By what the code has already, or by asking for what is asserted.
  bool is_idiomatic() const { return idiom == "join" || idiom == "notify" || idiom == "poll"; }
};

// What `unflake repair --json` says, which took so long.
Repaired repaired_by(const Truth& truth, const std::string& output, double seconds);

Compared compared_by(const std::string& method, const std::string& output, double seconds);

// What `unflake run --json` says about runs of a test with the patch.
void add_runs(Repaired& repaired, const std::string& lines);

std::vector<Score> repair_scores(const std::vector<Repaired>& all);
std::string repairs_section(const std::vector<Repaired>& all,
                            const std::vector<std::string>& options, const Surroundings& where);

}  // namespace unflake::eval
