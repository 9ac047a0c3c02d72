#pragma once

#include <string>
#include <vector>

#include "app/project.h"
#include "model/balance_report.h"
#include "util/result.h"
#include "util/time.h"

namespace unflake {

struct SourceOptions {
  std::string compile_commands_folder;
  bool were_asked_for = false;  // the values: then those that may weaken the test are edited too
};

// Finds where the proposed values are in the source, and what should be there instead.
void add_sources(BalanceReport& report, const Project& project, const SourceOptions& options);

// Tests may share a value: one that another was not shown to need less of is not edited.
void leave_out_shared_edits(const std::vector<BalanceReport*>& reports);

// All edits that were found; empty when there are none.
struct Patch {
  std::string text;
  std::string folder;           // in which it is to be applied
  std::vector<Error> left_out;  // files that cannot be in a patch, and why
};
Patch patch_of(const std::vector<const BalanceReport*>& reports, const Project& project);

// "0.1%" or "0.001", at most `most`.
Result<double> parse_share(const std::string& text, const std::string& option, double most = 1);

// "idle,one-core", each once; idle, which all others are compared with, comes first.
Result<std::vector<LoadLevel>> parse_loads(const std::string& text);

// A factor, or the time that the benchmark takes on the other machine: then it is run here.
Result<double> parse_scale(const std::string& text);

struct MachineSpeed {
  Duration median{}, fastest{}, slowest{};
  int rounds = 0;
};

// How long a fixed piece of work takes here: computing, and handing over between two threads. What
// a test waits for is made of both.
MachineSpeed measure_machine_speed();

}  // namespace unflake
