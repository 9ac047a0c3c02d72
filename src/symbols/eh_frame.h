#pragma once

#include <cstdint>
#include <vector>

#include "symbols/elf_file.h"

namespace unflake {

struct Extent {
  uint64_t start = 0;
  uint64_t size = 0;
};

// The extents of functions as exception handling sees them: what is left in a stripped file.
// Ordered; procedure linkage tables are left out.
std::vector<Extent> eh_frame_extents(const ElfFile& file);

}  // namespace unflake
