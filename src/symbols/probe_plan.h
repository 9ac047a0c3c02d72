#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/schedule_protocol.h"
#include "symbols/image.h"

namespace unflake {

// How an instruction is executed when a probe has taken its place.
struct Displaced {
  uint8_t length = 0;  // 0: these bytes are not an instruction
  protocol::ProbeKind kind = protocol::ProbeKind::copy;
  uint8_t aux = 0;
  int32_t target = 0;
  std::string_view refusal;  // why it cannot be displaced; empty: it can
};

// Understands the instruction that these bytes begin with.
Displaced displace(std::span<const uint8_t> code);

struct Unprobeable {
  uint64_t address = 0;
  std::string_view reason;
};

struct ProbePlan {
  std::vector<protocol::Probe> probes;  // ordered by address, without a site
  std::vector<Unprobeable> unprobeable;
};

// What all probes of one request have in common.
struct ProbeRequest {
  uint32_t image = 0;  // its number in Plan::images
  uint8_t flags = 0;   // protocol::probe_one_shot ...
};

// Why no probe may be put into this image at all; empty: probes are allowed. The agent's own code
// is off limits: a probe there would be hit while one is being handled.
std::string_view why_never_probed(std::string_view path);

// Probes at these addresses. Every affected function is disassembled from its start, because line
// tables also name addresses in the middle of an instruction.
ProbePlan plan_probes(const Image& image, std::span<const uint64_t> addresses,
                      const ProbeRequest& request);

// A probe at the entry of each function. One-shot probes and those of calls may be jumps where
// nobody would notice, for which all code of the image is looked through; for others only the first
// instructions, so a large library takes no time.
ProbePlan plan_entries(const Image& image, std::span<const Function> functions,
                       const ProbeRequest& request);

// Where the source lines of these functions begin.
std::vector<uint64_t> line_addresses(const Image& image,
                                     const std::function<bool(const Function&)>& wanted);

// Where the instructions of a function begin, up to the first bytes that are not one.
std::vector<uint64_t> instruction_addresses(const Image& image, const Function& function);

// Instructions of a function that touch memory, in a way of which the address can be told, and that
// a probe can take the place of.
struct MemoryAccess {
  uint64_t address = 0;
  protocol::PlanAccess access{};
};
std::vector<MemoryAccess> memory_accesses(const Image& image, const Function& function);

}  // namespace unflake
