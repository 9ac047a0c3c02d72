#pragma once

#include <stddef.h>

namespace unflake::agent {

inline constexpr size_t refusal_size = 244;

// Why a fork of this process would not be what a new process is, because of what its static
// constructors did; false: there is nothing. `socket` is the one descriptor that may be open.
bool find_refusal(int socket, char (&refusal)[refusal_size]);

}  // namespace unflake::agent
