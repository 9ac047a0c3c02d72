#pragma once

#include <memory>

#include "symbols/elf_file.h"

namespace unflake {

// The separate debug file of a stripped one, where distributions and build systems put it: by build
// id below /usr/lib/debug, or by name beside the file. Null when there is none that matches.
std::unique_ptr<ElfFile> find_debug_file(const ElfFile& file);

}  // namespace unflake
