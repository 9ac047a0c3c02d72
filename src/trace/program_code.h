#pragma once

#include "symbols/project_code.h"
#include "trace/code_view.h"
#include "trace/trace.h"

namespace unflake {

// The code of the project's images that a run has shown, and its sources where they are on this
// machine. What is asked for first is read then, and kept.
CodeView program_code(const Trace& trace, const ProjectCodeRules& rules);

}  // namespace unflake
