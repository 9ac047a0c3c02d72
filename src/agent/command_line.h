#pragma once

namespace unflake::agent {

// Learns what show_command_line needs, while there is time.
void read_memory_layout();

// Makes /proc/self/cmdline, and with it `ps`, show these words, which lie behind each other. Where
// the kernel cannot do it, those of the server stay.
void show_command_line(const char* begin, const char* end);

}  // namespace unflake::agent
