#pragma once

#include <string>
#include <string_view>

#include "model/repair.h"
#include "util/result.h"

namespace unflake {

inline constexpr int fix_format = 1;

// As docs/formats.md describes it: the hand-overs, what was measured, and a repro document whose
// plan keeps the order.
std::string fix_json(const Fix& fix);

// The file may come from anybody. An error says what is wrong, at which member, and what to do.
Result<Fix> parse_fix(std::string_view text, const std::string& path_for_errors);

}  // namespace unflake
