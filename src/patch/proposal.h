#pragma once

#include "patch/source_unit.h"

namespace unflake {

// The edit that should give the call its new time, before it is tried.
Result<SourceEdit> propose_edit(const SourceUnit& unit, const WantedLiteral& wanted,
                                Duration value);

}  // namespace unflake
