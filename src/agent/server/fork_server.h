#pragma once

namespace unflake::agent {

// This process is to serve: `socket` is the number of the socket as text. The agent attaches to no
// memory before a child knows which one is its own.
void plan_to_serve(const char* socket);
bool is_to_serve();

struct Arguments {
  int count;
  char** words;  // ends with a null
};

// Serves on the socket. Returns once for each request, in the child that runs it; the process that
// was asked to serve never comes back.
Arguments serve();

// Moves the stack, the heap and new mappings by random amounts and then calls main, because a
// forked process has the addresses of its server. A run that is to be the same again stays there.
int call_main_somewhere_else(int (*main)(int, char**, char**), const Arguments& arguments,
                             bool stays);

// What the program has registered with pthread_atfork before its main, for forks past libc's own.
bool too_many_fork_handlers();
void run_prepare_handlers();
void run_parent_handlers();
void run_child_handlers();

}  // namespace unflake::agent
