#include "agent/schedule/accesses.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/hash.h"
#include "agent/raw.h"
#include "agent/record/memory.h"
#include "agent/schedule/scheduler.h"

namespace unflake::agent {
namespace {

using namespace protocol;

// As instructions number them.
constexpr int registers_by_number[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                       REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15};

uint64_t register_of(const gregset_t& registers, uint8_t number) {
  return number < 16 ? static_cast<uint64_t>(registers[registers_by_number[number]]) : 0;
}

uint64_t address_of(const PlanAccess& access, uint64_t bias, const gregset_t& registers) {
  const auto displacement = static_cast<uint64_t>(access.displacement);
  if ((access.flags & access_in_image) != 0) return bias + displacement;
  return register_of(registers, access.base) + register_of(registers, access.index) * access.scale +
         displacement;
}

// --- Finding out what is shared ---

// An address and who has touched it.
struct Touched {
  uint64_t address;
  uint32_t thread;  // the first one + 1
  bool by_several;
  bool written;
  uint8_t access_count;
  uint32_t accesses[11];
};

constexpr uint32_t touched_size = 1 << 16;
Touched* touched = nullptr;

bool has_table() {
  if (touched != nullptr) return true;
  const long mapped = raw_syscall(__NR_mmap, 0, sizeof(Touched) * touched_size,
                                  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(mapped)) return false;
  touched = reinterpret_cast<Touched*>(mapped);
  return true;
}

Touched* find_or_add(uint64_t address) {
  const uint64_t hash = mix(0, address);
  for (uint32_t tries = 0; tries < 64; ++tries) {
    Touched& entry = touched[(hash + tries) % touched_size];
    if (entry.address == 0) entry.address = address;
    if (entry.address == address) return &entry;
  }
  return nullptr;
}

void mark_shared(uint32_t access) {
  schedule_tables().access_states[access].store(access_is_shared);
}

void remember(Touched& entry, uint32_t access) {
  for (uint8_t i = 0; i < entry.access_count; ++i)
    if (entry.accesses[i] == access) return;
  if (entry.access_count < sizeof entry.accesses / sizeof entry.accesses[0])
    entry.accesses[entry.access_count++] = access;
}

// From when an address is shared on, all that touch it are, and those that did before.
void record_touch(uint32_t access, uint64_t address, bool writes) {
  Touched* entry = has_table() ? find_or_add(address) : nullptr;
  if (entry == nullptr) return;
  const uint32_t thread = this_participant()->number + 1;
  if (entry->thread == 0) entry->thread = thread;
  entry->by_several |= entry->thread != thread;
  entry->written |= writes;
  remember(*entry, access);
  if (!entry->by_several || !entry->written) return;
  mark_shared(access);
  for (uint8_t i = 0; i < entry->access_count; ++i) mark_shared(entry->accesses[i]);
}

// --- Exchanging threads ---

constexpr uint32_t reads_until_yield = 32;

constinit thread_local struct {
  uint64_t address;
  uint32_t reads;
} spinning __attribute__((tls_model("initial-exec"))) = {};

// Who reads the same again and again waits for another thread to write it.
bool seems_to_spin(uint64_t address, bool writes) {
  if (writes || spinning.address != address) spinning = {address, 0};
  if (writes || ++spinning.reads < reads_until_yield) return false;
  spinning.reads = 0;
  return true;
}

void take_memory_step(uint32_t site, uint64_t address, bool writes) {
  Step step{};
  step.api = probe_api;
  step.site = site;
  step.may_switch = true;
  step.object = address;
  step.writes = writes;
  step.yields = seems_to_spin(address, writes);
  step.deadline = forever;
  take_step(step);
}

// An instruction that reads and writes is not one step: what another thread writes in between is
// lost. So it begins with the value that was there at first.
void take_both_steps(uint32_t site, uint64_t address, uint8_t size) {
  uint64_t read = 0;
  take_memory_step(site, address, false);
  memcpy(&read, reinterpret_cast<const void*>(address), size);
  take_memory_step(site, address, true);
  memcpy(reinterpret_cast<void*>(address), &read, size);
}

bool can_be_read(uint64_t address) {
  return address > 4096 && address < (uint64_t{1} << 47);
}

}  // namespace

void touch(uint32_t number, uint32_t site, uint64_t bias, const gregset_t& registers) {
  const ScheduleTables& tables = schedule_tables();
  if (number >= tables.accesses.count || this_participant() == nullptr) return;
  const PlanAccess& access = tables.accesses[number];
  const uint64_t address = address_of(access, bias, registers);
  const bool writes = (access.flags & access_writes) != 0;
  const bool reads = (access.flags & access_reads) != 0;
  if (!can_be_read(address)) return;  // the instruction will fault by itself
  if (tables.schedule[0].finds_accesses != 0) return record_touch(number, address, writes);
  if (reads && writes && (access.flags & access_is_atomic) == 0 && access.size <= sizeof(uint64_t))
    take_both_steps(site, address, access.size);
  else
    take_memory_step(site, address, writes);
}

}  // namespace unflake::agent
