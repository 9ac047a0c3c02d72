#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "util/time.h"

namespace unflake {

// A bar for every day, which shows its number on hover. Empty when there are no days.
std::string trend_svg(std::span<const int64_t> per_day, Day first_day);

}  // namespace unflake
