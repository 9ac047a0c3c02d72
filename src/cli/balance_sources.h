#pragma once

#include <string>
#include <vector>

#include "cli/project.h"
#include "report/balance.h"

namespace unflake {

// Finds where the proposed values stand in the source, and what should stand there instead.
void add_sources(BalanceReport& report, const Project& project,
                 const std::string& compile_commands_folder);

// All edits that were found, as one patch; empty when there are none.
Result<std::string> patch_of(const std::vector<const BalanceReport*>& reports,
                             const Project& project);

}  // namespace unflake
