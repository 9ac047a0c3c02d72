#pragma once

#include <string>

#include "model/repro.h"

namespace unflake {

// How often the test fails at which delay, with 95 % intervals and the slack as a band. Empty when
// nothing was measured.
std::string dose_svg(const Repro& repro);

}  // namespace unflake
