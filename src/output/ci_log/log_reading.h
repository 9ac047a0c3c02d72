#pragma once

#include <string>
#include <string_view>

#include "output/ci_log/ci_log.h"
#include "output/ci_log/log_programs.h"

namespace unflake {

// The failures that a run with this output has. `is_complete`: the framework lived to sum up, as
// the log shows elsewhere. Without a failure that nothing but an exit status tells.
std::vector<Failure> failures_in(std::string text, Framework framework, const LoggedEnd& end,
                                 bool is_complete);

// Adds what a program's output tells.
void read_program(const LoggedProgram& program, CiLog& log);

}  // namespace unflake
