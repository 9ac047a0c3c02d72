#include "agent/probes/probed_image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/raw.h"
#include "protocol/agent_protocol.h"

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

// The handler has pushed the return address by the time the copy runs, so it is a jump,
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

// Tries one place after another, downwards.
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

// Code is written through /proc/self/mem: that needs no lock between threads, and leaves the
// protection of pages alone.

namespace {

// Out of the way of the numbers that a program's own files get.
constexpr long file_number = 1000;

// The file is known by its position, which nobody else would choose.
constexpr long mark = 0x5af3'1234'5678'9abc;

struct KeptFile {
  long number = -1;
  long process = 0;
} kept;

long open_memory() {
  return raw_syscall(__NR_openat, AT_FDCWD, as_word("/proc/self/mem"), O_RDWR | O_CLOEXEC);
}

bool write_to(long file, uint64_t address, const uint8_t* bytes, size_t size) {
  const auto wanted = static_cast<long>(size);
  return raw_syscall(__NR_pwrite64, file, as_word(bytes), wanted, static_cast<long>(address)) ==
         wanted;
}

// A program may close any file, and use its number for another. In a forked child the file is
// still that of the parent.
bool is_still_there(const KeptFile& file) {
  return file.number >= 0 && raw_syscall(__NR_getpid) == file.process &&
         raw_syscall(__NR_lseek, file.number, 0, SEEK_CUR) == mark;
}

bool write_by_new_file(uint64_t address, const uint8_t* bytes, size_t size) {
  const long file = open_memory();
  if (failed(file)) return false;
  const bool written = write_to(file, address, bytes, size);
  raw_syscall(__NR_close, file);
  return written;
}

// The pages stay writable: to take that back, threads would have to wait for each other.
bool write_by_protection(uint64_t address, const uint8_t* bytes, size_t size) {
  const uint64_t start = address & ~(protocol::page - 1);
  if (failed(raw_syscall(__NR_mprotect, static_cast<long>(start),
                         static_cast<long>(address + size - start),
                         PROT_READ | PROT_WRITE | PROT_EXEC)))
    return false;
  for (size_t i = 0; i < size; ++i)
    __atomic_store_n(reinterpret_cast<uint8_t*>(address) + i, bytes[i], __ATOMIC_RELEASE);
  return true;
}

}  // namespace

void prepare_to_write_code() {
  const long file = open_memory();
  if (failed(file)) return;
  const long moved = raw_syscall(__NR_fcntl, file, F_DUPFD_CLOEXEC, file_number);
  raw_syscall(__NR_close, file);
  if (!failed(moved) && raw_syscall(__NR_lseek, moved, mark, SEEK_SET) == mark)
    kept = {moved, raw_syscall(__NR_getpid)};
}

bool write_code(uint64_t address, const uint8_t* bytes, size_t size) {
  return (is_still_there(kept) && write_to(kept.number, address, bytes, size)) ||
         write_by_new_file(address, bytes, size) || write_by_protection(address, bytes, size);
}

bool write_code(uint64_t address, uint8_t byte) {
  return write_code(address, &byte, 1);
}

}  // namespace unflake::agent
