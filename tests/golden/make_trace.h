#pragma once

#include "model/trace.h"

namespace unflake::golden {

// A failing run of two threads in two processes, with a name that a terminal must not obey.
Trace make_trace();

}  // namespace unflake::golden
