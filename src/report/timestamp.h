#pragma once

#include <chrono>
#include <string>

namespace unflake {

// "2026-03-01T12:00:00.250000Z"
std::string timestamp(std::chrono::system_clock::time_point time);

// "2026-03-01T12:00:00Z"
std::string timestamp_in_seconds(std::chrono::system_clock::time_point time);

// "2026-03-01 12:00", UTC too: for people, in a table that says so.
std::string timestamp_in_minutes(std::chrono::system_clock::time_point time);

}  // namespace unflake
