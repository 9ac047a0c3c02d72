#pragma once

#include <string>
#include <vector>

#include "model/trace.h"
#include "trace/names.h"

namespace unflake {

// Of a run that hung: who waits where for whom, and who would have ended the wait when the test
// passes, with what became of that one. A line for each kind of wait; threads that wait alike are
// told together. Empty: nobody waits for ever.
std::vector<std::string> describe_hang(const Trace& hung, const Trace* passing,
                                       const Wrappers& wrappers);

}  // namespace unflake
