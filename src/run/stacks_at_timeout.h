#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "util/process_result.h"

namespace unflake {

// Where the threads of a test that ran out of time are, before it is killed: of its first process,
// then of everything else below the calling supervisor but these others. Bounded in time and size.
std::vector<ThreadAtTimeout> stacks_at_timeout(pid_t first, const std::set<pid_t>& others,
                                               const std::string& project_root);

}  // namespace unflake
