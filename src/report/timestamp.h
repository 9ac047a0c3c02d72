#pragma once

#include <chrono>
#include <string>

namespace unflake {

// "2026-03-01T12:00:00.250000Z"
std::string timestamp(std::chrono::system_clock::time_point time);

// "2026-03-01T12:00:00Z"
std::string timestamp_in_seconds(std::chrono::system_clock::time_point time);

}  // namespace unflake
