#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lifecycle/quarantine.h"

namespace unflake {

// An entry and where it is in the text, in bytes.
struct QuarantineBlock {
  QuarantineEntry entry;
  size_t begin = 0;   // of the comment directly above it, or of its header
  size_t header = 0;  // of its `[[test]]`
  size_t end = 0;     // after the line of its last key
};

// The file's entries in its own order.
Result<std::vector<QuarantineBlock>> read_quarantine_blocks(std::string_view text,
                                                            const std::string& path);

// `[[test]]` and one key per line.
std::string quarantine_block_text(const QuarantineEntry& entry);

}  // namespace unflake
