#pragma once

#include "patch/literal_search.h"

namespace unflake {

// What else changes when the literal changes, for people; empty when nothing is known to.
std::string caution_of(const SourceUnit& unit, const VariableUses& uses, const FoundLiteral& found);

}  // namespace unflake
