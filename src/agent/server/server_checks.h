#pragma once

#include <stddef.h>

namespace unflake::agent {

inline constexpr size_t refusal_size = 244;

// Why a fork of this process would differ from a new process, because of what its static
// constructors did; false: there is nothing. `socket` is the one descriptor that may be open.
bool find_refusal(int socket, char (&refusal)[refusal_size]);

// Whether the program or one of its libraries could load further ones.
bool opens_libraries();

// Learns what show_command_line needs, while there is time.
void read_memory_layout();

// Makes /proc/self/cmdline, and with it `ps`, show these words, which lie one after another. Where
// the kernel cannot do it, those of the server stay.
void show_command_line(const char* begin, const char* end);

}  // namespace unflake::agent
