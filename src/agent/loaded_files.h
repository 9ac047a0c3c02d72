#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace unflake::agent {

// An executable or library in this process.
struct LoadedFile {
  const char* path = nullptr;
  uint64_t bias = 0;  // address in memory - address in the ELF file
  const void* identity = nullptr;
  const ElfW(Phdr) * segments = nullptr;
  size_t segment_count = 0;
};

// A file that the dynamic linker has loaded; false: it cannot be read safely.
bool describe(const link_map& map, LoadedFile& file);

bool contains(const LoadedFile& file, uint64_t address);

struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
};
Bytes build_id_of(const LoadedFile& file);  // empty: it has none

// Its number in Plan::images, or protocol::none.
uint32_t number_in_plan(const LoadedFile& file);

}  // namespace unflake::agent
