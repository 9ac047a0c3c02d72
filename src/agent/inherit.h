#pragma once

#include <stddef.h>

// What a program that this one starts needs to be followed: LD_PRELOAD and the memory's name.
namespace unflake::agent {

// Remembers both as this process has found them; it may clear its environment later.
void remember_inheritance(const char* memory_name);

// How many pointers follow_environment writes at most for this environment.
size_t followed_size(char* const* environment);
// Writes the environment into `room` with what the child needs, and returns it; `environment`
// itself when it has that already. `preload` has room for preload_size characters.
inline constexpr size_t preload_size = 4096;
char* const* follow_environment(char* const* environment, char** room, char* preload);

}  // namespace unflake::agent
