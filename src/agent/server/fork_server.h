#pragma once

#include <stddef.h>

namespace unflake::agent {

// This process will serve: `socket` is the number of the socket as text. The agent attaches to no
// memory before a child knows which one is its own.
void plan_to_serve(const char* socket);
bool is_to_serve();

struct Arguments {
  int count;
  char** words;  // null-terminated
};

// Serves on the socket. Returns once for each request, in the child that runs it; the process that
// was asked to serve never returns.
Arguments serve();

// Moves the stack, the heap and new mappings by random amounts and then calls main, because a
// forked process has the addresses of its server. A run that is to be the same again stays there.
int call_main_somewhere_else(int (*main)(int, char**, char**), const Arguments& arguments,
                             bool stays);

// What the program has registered with pthread_atfork before its main, for forks that bypass libc.
bool too_many_fork_handlers();
void run_prepare_handlers();
void run_parent_handlers();
void run_child_handlers();

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
