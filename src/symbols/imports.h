#pragma once

#include <cstdint>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/image.h"

namespace unflake {

// The functions of other libraries that this file calls through its procedure linkage tables, by
// the entries there; ordered by them. Calls that were compiled with -fno-plt go through no table.
std::vector<Import> imports_of(const ElfFile& file);

}  // namespace unflake
