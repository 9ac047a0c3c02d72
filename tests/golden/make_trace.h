#pragma once

#include "model/trace.h"

namespace unflake::testing {

// A failing run of two threads in two processes, with a name that a terminal must not obey.
Trace make_trace();

}  // namespace unflake::testing
