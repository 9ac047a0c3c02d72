#pragma once

#include <string>
#include <string_view>

namespace unflake {

// The text with everything that differs from one run or machine to the next made equal: numbers
// with their units, addresses, dates, identifiers of processes and threads, UUIDs, temporary paths,
// the folders above a file. Words stay, and so do the digits inside them (int32_t, sha256, v2).
std::string normalise(std::string_view text);

}  // namespace unflake
