#pragma once

#include <optional>
#include <string>

namespace unflake {

// By the name of a type without aliases, as libclang spells it.

// Nanoseconds of what a std::chrono::duration (or boost's) counts.
std::optional<double> duration_unit(const std::string& type);

// A duration or a point in time.
bool is_time_type(const std::string& type);

// timespec, timeval and the timers that are made of two of them.
bool is_time_structure(const std::string& type);
bool is_timer_structure(const std::string& type);

// Counts in floating point: every time can be written.
bool is_floating_duration(const std::string& type);

}  // namespace unflake
