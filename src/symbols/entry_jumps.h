#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "protocol/agent_protocol.h"
#include "symbols/image.h"

namespace unflake {

// Which entries of functions may be overwritten by a jump, five bytes long. These functions are
// looked through for whoever could come to the bytes behind an entry.
class EntryJumps {
 public:
  EntryJumps(const Image& image, std::span<const Function> functions);

  // What has to move away from the entry; none: a jump there could be noticed.
  std::optional<protocol::MovedCode> at(uint64_t entry) const;

 private:
  void look_through(const Function& function);
  bool is_entered_behind(uint64_t entry) const;
  bool jumps_anywhere(uint64_t entry) const;
  bool is_padding(uint64_t address, uint64_t end) const;

  const Image& image_;
  std::vector<uint64_t> targets_;  // of branches and calls, and where functions begin; ordered
  std::vector<uint64_t> unsure_;   // functions that may jump to where nobody can tell; ordered
};

}  // namespace unflake
