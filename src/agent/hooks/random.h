#pragma once

namespace unflake::agent {

// Whether the program has asked the system for random numbers so far: what it made of them before
// its main, all forks of a server would share.
bool random_was_drawn();

// In a controlled run, instead of /dev/urandom and the like: a file whose bytes come from the seed.
// -1: there is no memory.
bool is_random_device(const char* path);
int open_seeded_device(int flags);

}  // namespace unflake::agent
