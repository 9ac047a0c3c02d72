#include "agent/slots.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/raw.h"

namespace unflake::agent {
namespace {

using protocol::Probe;
using protocol::ProbeKind;

constexpr uint8_t jump_opcode = 0xe9;
constexpr uint8_t jump_size = 5;
constexpr int64_t megabyte = 1 << 20;
// Less than 32 bits give, to leave room for the data that the code addresses.
constexpr int64_t reach = 1984 * megabyte;

struct ModRm {
  explicit ModRm(uint8_t byte) : mod(byte >> 6), reg((byte >> 3) & 7), rm(byte & 7) {}
  uint8_t mod, reg, rm;
};

bool add_to_displacement(uint8_t* where, int64_t more) {
  int32_t displacement;
  memcpy(&displacement, where, sizeof displacement);
  const int64_t moved = displacement + more;
  displacement = static_cast<int32_t>(moved);
  memcpy(where, &displacement, sizeof displacement);
  return moved == displacement;
}

bool is_stack_pointer(const uint8_t* modrm) {
  const bool extended = (modrm[-2] & 0xf0) == 0x40 && (modrm[-2] & 1) != 0;
  return !extended && ModRm(modrm[0]).rm == 4 && (modrm[1] & 7) == 4;
}

// The handler has pushed the return address by the time that the copy runs, so that it is a jump,
// and operands on the stack are 8 bytes further away.
bool call_to_jump(uint8_t* modrm, int64_t distance) {
  const ModRm operand(*modrm);
  *modrm = static_cast<uint8_t>((*modrm & 0xc7) | 4 << 3);
  if (operand.mod == 0 && operand.rm == 5) return add_to_displacement(modrm + 1, distance);
  if (operand.mod == 3 || !is_stack_pointer(modrm)) return true;
  if (operand.mod == 2) return add_to_displacement(modrm + 2, 8);
  modrm[2] = static_cast<uint8_t>(modrm[2] + 8);
  return operand.mod == 1;
}

bool well_formed(const Probe& probe) {
  const int room = probe.length - probe.aux;
  if (probe.length == 0 || probe.length > sizeof(Slot::code) - jump_size) return false;
  if (probe.kind == ProbeKind::copy_relative) return room >= 4;
  return probe.kind != ProbeKind::call_indirect || (probe.aux > 0 && room > 0);
}

char* map_at(int64_t address, uint64_t size, long& error) {
  const long mapped =
      raw_syscall(__NR_mmap, address, static_cast<long>(size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  error = failed(mapped) ? -mapped : 0;
  if (error != 0) return nullptr;
  if (mapped == address) return reinterpret_cast<char*>(mapped);
  raw_syscall(__NR_munmap, mapped, static_cast<long>(size));  // an old kernel took it as a hint
  error = EEXIST;
  return nullptr;
}

// Tries one place after the other, downwards.
char* map_between(int64_t lowest, int64_t highest, uint64_t size, long& error) {
  constexpr int64_t in_page = protocol::page - 1;
  for (int64_t address = highest & ~in_page; address >= lowest; address -= megabyte) {
    char* memory = map_at(address, size, error);
    if (memory != nullptr || error != EEXIST) return memory;
  }
  return nullptr;
}

}  // namespace

bool needs_slot(const Probe& probe) {
  if ((probe.flags & protocol::probe_one_shot) != 0) return false;
  return probe.kind == ProbeKind::copy || probe.kind == ProbeKind::copy_relative ||
         probe.kind == ProbeKind::call_indirect;
}

bool fill_slot(Slot& slot, uint32_t number, const Probe& probe, const uint8_t* code) {
  if (!well_formed(probe)) return false;
  const int64_t distance = code - slot.code;
  memcpy(slot.code, code, probe.length);
  slot.probe = number;
  if (probe.kind == ProbeKind::copy_relative &&
      !add_to_displacement(slot.code + probe.aux, distance))
    return false;
  if (probe.kind == ProbeKind::call_indirect && !call_to_jump(slot.code + probe.aux, distance))
    return false;
  uint8_t* jump = slot.code + probe.length;
  jump[0] = jump_opcode;
  memset(jump + 1, 0, 4);
  return add_to_displacement(jump + 1, distance - jump_size);
}

// Below the code first: what grows, the heap, is above an executable.
char* map_near(uint64_t start, uint64_t end, uint64_t size) {
  const auto low = static_cast<int64_t>(start);
  const auto high = static_cast<int64_t>(end);
  const auto room = static_cast<int64_t>(size);
  const int64_t lowest = high - reach > megabyte ? high - reach : megabyte;
  long error = 0;
  char* memory = map_between(lowest, low - room, size, error);
  if (memory == nullptr && (error == 0 || error == EEXIST))
    memory = map_between(high, low + reach - room, size, error);
  return memory;
}

}  // namespace unflake::agent
