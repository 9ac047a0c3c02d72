#pragma once

#include <stdint.h>

#include "protocol/agent_protocol.h"

namespace unflake::agent {

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
