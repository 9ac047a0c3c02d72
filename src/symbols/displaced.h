#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/agent_protocol.h"

namespace unflake {

// How an instruction is executed when a probe has taken its place.
struct Displaced {
  uint8_t length = 0;  // 0: these bytes are no instruction
  protocol::ProbeKind kind = protocol::ProbeKind::copy;
  uint8_t aux = 0;
  int32_t target = 0;
  std::string_view refusal;  // why it cannot be displaced; empty: it can
};

// Understands the instruction that these bytes begin with.
Displaced displace(std::span<const uint8_t> code);

}  // namespace unflake
