#pragma once

#include <chrono>
#include <string_view>

#include "util/result.h"

namespace unflake {

// "2026-03-01", "2026-03-01 12:00", "2026-03-01T12:00:30Z"; always UTC.
Result<std::chrono::system_clock::time_point> parse_time(std::string_view text);

}  // namespace unflake
