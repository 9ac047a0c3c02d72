#pragma once

#include <string>
#include <vector>

#include "cli/project.h"
#include "model/balance_report.h"

namespace unflake {

struct SourceOptions {
  std::string compile_commands_folder;
  bool were_asked_for = false;  // the values: then those are edited, too, that may weaken the test
};

// Finds where the proposed values stand in the source, and what should stand there instead.
void add_sources(BalanceReport& report, const Project& project, const SourceOptions& options);

// Tests may share a value: one that another of them was not given less of is not edited.
void leave_out_shared_edits(const std::vector<BalanceReport*>& reports);

// All edits that were found; empty when there are none.
struct Patch {
  std::string text;
  std::string folder;           // in which it is to be applied
  std::vector<Error> left_out;  // files that cannot stand in a patch, and why
};
Patch patch_of(const std::vector<const BalanceReport*>& reports, const Project& project);

}  // namespace unflake
