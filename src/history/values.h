#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace unflake {

// The forms in which a history keeps what it is given.

int64_t to_microseconds(std::chrono::system_clock::time_point time);

// A stored number may be anything; one that no time_point can hold becomes the nearest that it can.
std::chrono::system_clock::time_point to_time(int64_t microseconds);

// A name that no other session has, on any machine.
std::string make_session_uuid();

}  // namespace unflake
