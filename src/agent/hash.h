#pragma once

#include <stdint.h>

namespace unflake::agent {

// Mixes well enough that 64 bits identify a stack; the same in every process.
inline uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

// A call of an API at an address. Mixed in sequence: neighbouring addresses differ in a few
// bits, as the numbers of APIs do.
inline uint64_t site_key(uint64_t address, uint16_t api) {
  return mix(mix(0, address), api) | 1;
}

// Where a key may be in a table, place by place: first in a small part of it, so that a short run
// touches few pages. Then each key goes its own way through the table, so that none is turned away
// by neighbours while there is room.
inline uint32_t place_of(uint64_t hash, uint32_t tries, uint32_t size) {
  constexpr uint32_t part = 128, tries_there = 16;
  if (tries < tries_there) return static_cast<uint32_t>(hash % part + tries) % size;
  const uint64_t step = (hash >> 17) | 1;
  return static_cast<uint32_t>((mix(hash, size) + tries * step) % size);
}
inline constexpr uint32_t most_tries = 256;

inline uint64_t hash_text(const char* text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100000001b3;
  return hash;
}

}  // namespace unflake::agent
