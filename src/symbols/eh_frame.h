#pragma once

#include <cstdint>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/image.h"

namespace unflake {

// The extents of functions as exception handling sees them: what is left in a stripped file.
// Ordered; procedure linkage tables are left out.
std::vector<Extent> eh_frame_extents(const ElfFile& file);

}  // namespace unflake
