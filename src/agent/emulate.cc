#include "agent/emulate.h"

namespace unflake::agent {
namespace {

using protocol::Probe;
using protocol::ProbeKind;

enum Flag : uint64_t {
  carry = 0x1,
  parity = 0x4,
  zero = 0x40,
  sign = 0x80,
  overflow = 0x800,
};

bool even_condition(uint64_t flags, uint8_t condition) {
  const bool less = ((flags & sign) != 0) != ((flags & overflow) != 0);
  switch (condition >> 1) {
    case 0:
      return (flags & overflow) != 0;
    case 1:
      return (flags & carry) != 0;
    case 2:
      return (flags & zero) != 0;
    case 3:
      return (flags & (carry | zero)) != 0;
    case 4:
      return (flags & sign) != 0;
    case 5:
      return (flags & parity) != 0;
    case 6:
      return less;
    default:
      return less || (flags & zero) != 0;
  }
}

bool holds(uint64_t flags, uint8_t condition) {
  return even_condition(flags, condition) == ((condition & 1) == 0);
}

void push(gregset_t& registers, uint64_t value) {
  registers[REG_RSP] -= 8;
  *reinterpret_cast<uint64_t*>(registers[REG_RSP]) = value;
}

void pop_rip(gregset_t& registers, int32_t more) {
  registers[REG_RIP] = *reinterpret_cast<const greg_t*>(registers[REG_RSP]);
  registers[REG_RSP] += 8 + more;
}

}  // namespace

void emulate(const Probe& probe, uint64_t address, gregset_t& registers) {
  const uint64_t next = address + probe.length;
  const uint64_t target = next + static_cast<int64_t>(probe.target);
  uint64_t rip = next;
  switch (probe.kind) {
    case ProbeKind::call:
      push(registers, next);
      rip = target;
      break;
    case ProbeKind::jump:
      rip = target;
      break;
    case ProbeKind::jump_if:
      if (holds(static_cast<uint64_t>(registers[REG_EFL]), probe.aux)) rip = target;
      break;
    case ProbeKind::ret:
      return pop_rip(registers, probe.target);
    case ProbeKind::push_rbp:
      push(registers, static_cast<uint64_t>(registers[REG_RBP]));
      break;
    default:
      break;
  }
  registers[REG_RIP] = static_cast<greg_t>(rip);
}

void enter_copy(const Probe& probe, uint64_t address, const uint8_t* copy, gregset_t& registers) {
  if (probe.kind == ProbeKind::call_indirect) push(registers, address + probe.length);
  registers[REG_RIP] = reinterpret_cast<greg_t>(copy);
}

void leave_copy(const Probe& probe, uint64_t address, uint64_t progress, gregset_t& registers) {
  const bool done = progress >= probe.length;
  if (!done && probe.kind == ProbeKind::call_indirect) registers[REG_RSP] += 8;
  registers[REG_RIP] = static_cast<greg_t>(done ? address + probe.length : address);
}

}  // namespace unflake::agent
