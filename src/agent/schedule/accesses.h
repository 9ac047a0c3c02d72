#pragma once

#include <stdint.h>
#include <ucontext.h>

namespace unflake::agent {

// A thread of a controlled run is about to touch memory, by an access of the plan in an image that
// is loaded at `bias`.
void touch(uint32_t access, uint32_t site, uint64_t bias, const gregset_t& registers);

}  // namespace unflake::agent
