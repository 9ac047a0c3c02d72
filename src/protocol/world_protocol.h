#pragma once

// How a run is told which clock and which random numbers it has.
namespace unflake::protocol {

inline constexpr const char* world_file_name = "libunflake-world.so";
inline constexpr const char* world_clock_variable = "UNFLAKE_WORLD_CLOCK_NS";  // added to the clock
inline constexpr const char* world_seed_variable = "UNFLAKE_WORLD_SEED";       // 0: none

}  // namespace unflake::protocol
