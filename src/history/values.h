#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace unflake {

// The forms in which a history keeps what it is given.

int64_t to_microseconds(std::chrono::system_clock::time_point time);

// A stored number may be anything; one that no time_point can hold becomes the nearest that it can.
std::chrono::system_clock::time_point to_time(int64_t microseconds);

// The head and the tail of an output, with a line that says how much is missing between them.
std::string bounded_output(std::string_view output);

// A name that no other session has, on any machine.
std::string make_session_uuid();

}  // namespace unflake
