#pragma once

namespace unflake::agent {

// What the program has registered with pthread_atfork before its main, for forks past libc's own.
bool too_many_fork_handlers();
void run_prepare_handlers();
void run_parent_handlers();
void run_child_handlers();

}  // namespace unflake::agent
