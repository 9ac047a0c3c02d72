#pragma once

#include <stdint.h>

namespace unflake::agent {

// Gets ready to write often.
void prepare_to_write_code();

// Writes one byte into code that may be running in other threads. False: it was not possible.
bool write_code(uint64_t address, uint8_t byte);

}  // namespace unflake::agent
