#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_protocol.h"

namespace unflake::agent {

// More of one process are not known to the agent.
inline constexpr uint32_t most_images = 512;

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

// Its number in the plan's images, or protocol::none.
uint32_t number_in_plan(const LoadedFile& file);

enum class CodeOwner : uint8_t {
  project,
  wrapper,  // a system library that calls on behalf of its caller: libstdc++, libc, sanitizers
  system,   // a library that has threads and locks of its own
  unknown,  // no image: generated code
};

// An executable or library as this process has loaded it.
struct LoadedImage {
  const void* link_map;
  uint64_t bias;
  uint64_t start;  // 0: it was unloaded
  uint64_t end;
  uint64_t name_hash;    // of the base name
  uint32_t number;       // in the report
  uint32_t plan_number;  // in the plan; none: it does not know this image
  CodeOwner owner;
  bool is_cxx_runtime;
  bool locks_for_itself;  // libstdc++: std::mutex and std::call_once are in the caller's code
};

// The image at this address; nullptr: none. Lock-free for images that were seen before.
const LoadedImage* image_at(uint64_t address);

// To be called after a library was closed, until it says that nothing has gone: forgets one image
// that was unloaded, and tells where it was.
bool forget_closed_image(uint64_t& start, uint64_t& end);
uint32_t closed_images();  // how many there have been

// Whose code this is: a function of a system header that was compiled into a project image is a
// wrapper.
CodeOwner owner_of(uint64_t address, const LoadedImage* image);

// The compiled part of the C++ library, where it is not linked into the program.
bool is_cxx_runtime(const void* address);

protocol::Address address_in(uint64_t address, const LoadedImage* image);

const LoadedImage* executable_image();

// In a forked child: whoever was adding an image is not there any more.
void forget_adding();

}  // namespace unflake::agent
