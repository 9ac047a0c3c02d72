#pragma once

#include <cstddef>
#include <span>

#include "trace/raw_report.h"

namespace unflake {

// What unflake itself knows about the memory, and so need not believe.
struct MemoryShape {
  uint64_t generation = 0;
  size_t rules = 0;
  size_t probes = 0;
  size_t probe_hits_offset = 0;
  uint64_t made_ns = 0;  // CLOCK_MONOTONIC
  uint64_t read_ns = 0;
};

// Reads a copy of a run's memory, aligned as the memory was, that nobody else writes any more.
// Whatever its bytes are, the result is safe; what was not believed is told in `problems`.
RawReport read_report(std::span<const std::byte> memory, const MemoryShape& shape);

}  // namespace unflake
