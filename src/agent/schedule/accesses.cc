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

// --- Locks that a thread holds ---

struct HeldLock {
  uint64_t object;
  bool is_shared;  // by readers
};

constexpr uint32_t most_held = 16;

// A lock that has no room here is not known to be held, which only makes for more switch points.
constinit thread_local struct {
  HeldLock locks[most_held];
  uint32_t count;
} held __attribute__((tls_model("initial-exec"))) = {};

bool is_held(uint64_t object, bool writes) {
  for (uint32_t i = 0; i < held.count; ++i)
    if (held.locks[i].object == object && !(writes && held.locks[i].is_shared)) return true;
  return false;
}

// --- Finding out what is shared ---

// An address, who has touched it, and the locks that all of them held.
struct Touched {
  uint64_t address;
  uint32_t thread;  // the first one + 1
  bool by_several;
  bool written;
  uint8_t lock_count;
  uint8_t access_count;
  uint64_t locks[4];
  uint32_t accesses[11];
};

constexpr uint32_t touched_size = 1 << 16;
constexpr uint64_t word_size = 4;
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

void mark(uint32_t access, uint32_t seen) {
  auto& states = schedule_tables().access_states;
  states[access].store(states[access].load() | seen);
}

// False: there is no room.
bool remember(Touched& entry, uint32_t access) {
  for (uint8_t i = 0; i < entry.access_count; ++i)
    if (entry.accesses[i] == access) return true;
  if (entry.access_count >= sizeof entry.accesses / sizeof entry.accesses[0]) return false;
  entry.accesses[entry.access_count++] = access;
  return true;
}

void keep_common_locks(Touched& entry, bool writes) {
  uint8_t kept = 0;
  for (uint8_t i = 0; i < entry.lock_count; ++i)
    if (is_held(entry.locks[i], writes)) entry.locks[kept++] = entry.locks[i];
  entry.lock_count = kept;
}

void begin_with_own_locks(Touched& entry, bool writes) {
  constexpr uint8_t most = sizeof entry.locks / sizeof entry.locks[0];
  for (uint32_t i = 0; i < held.count && entry.lock_count < most; ++i)
    if (!(writes && held.locks[i].is_shared))
      entry.locks[entry.lock_count++] = held.locks[i].object;
}

// From when an address is shared on, all that touch it are, and those that did before. Where all
// hold one lock, its calls are the switch points.
void record_word(uint32_t access, uint64_t address, bool writes) {
  Touched* entry = has_table() ? find_or_add(address) : nullptr;
  if (entry == nullptr) return;
  const uint32_t thread = this_participant()->number + 1;
  if (entry->thread == 0) {
    entry->thread = thread;
    begin_with_own_locks(*entry, writes);
  }
  keep_common_locks(*entry, writes);
  entry->by_several |= entry->thread != thread;
  entry->written |= writes;
  if (!remember(*entry, access)) entry->lock_count = 0;
  if (!entry->by_several || !entry->written) return;
  const uint32_t seen = entry->lock_count > 0 ? access_is_guarded : access_is_shared;
  mark(access, seen);
  for (uint8_t i = 0; i < entry->access_count; ++i) mark(entry->accesses[i], seen);
}

// Words, because two accesses of different sizes can meet.
void record_touch(uint32_t access, uint64_t address, const PlanAccess& plan) {
  const bool writes = (plan.flags & access_writes) != 0;
  if (plan.size < word_size) return record_word(access, address, writes);
  for (uint64_t at = 0; at < plan.size; at += word_size) record_word(access, address + at, writes);
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

void take_memory_step(const Touch& touch, uint64_t address, bool writes) {
  Step step{};
  step.api = probe_api;
  step.site = touch.site;
  step.stack = touch.stack;
  step.may_switch = true;
  step.object = address;
  step.writes = writes;
  step.yields = seems_to_spin(address, writes);
  step.deadline = forever;
  take_step(step);
}

// An instruction that reads and writes is not one step: what another thread writes in between is
// lost. So it begins with the value that was there at first.
void take_both_steps(const Touch& touch, uint64_t address, uint8_t size) {
  uint64_t read = 0;
  take_memory_step(touch, address, false);
  memcpy(&read, reinterpret_cast<const void*>(address), size);
  take_memory_step(touch, address, true);
  memcpy(reinterpret_cast<void*>(address), &read, size);
}

// Whether accesses of the last thread that is left need not be seen any more.
bool may_leave_alone = false;

bool can_be_read(uint64_t address) {
  return address > 4096 && address < (uint64_t{1} << 47);
}

}  // namespace

void hold_lock(uint64_t object, bool is_shared) {
  if (held.count < most_held) held.locks[held.count++] = {object, is_shared};
}

void give_lock_back(uint64_t object) {
  for (uint32_t i = held.count; i-- > 0;) {
    if (held.locks[i].object != object) continue;
    held.locks[i] = held.locks[--held.count];
    return;
  }
}

void expect_company(bool may_leave) {
  may_leave_alone = may_leave;
}

bool watches_races() {
  return is_controlled() && schedule_tables().schedule[0].watches_races != 0;
}

bool needs_stack(uint32_t access) {
  const ScheduleTables& tables = schedule_tables();
  return watches_races() && access < tables.accesses.count &&
         (tables.accesses[access].flags & access_is_known) != 0;
}

bool take_touch(const Touch& touch, uint64_t bias, const gregset_t& registers) {
  const ScheduleTables& tables = schedule_tables();
  if (touch.access >= tables.accesses.count || this_participant() == nullptr) return true;
  const PlanAccess& access = tables.accesses[touch.access];
  const uint64_t address = address_of(access, bias, registers);
  const bool writes = (access.flags & access_writes) != 0;
  const bool reads = (access.flags & access_reads) != 0;
  const bool finds = tables.schedule[0].finds_accesses != 0;
  if (!can_be_read(address)) return true;  // the instruction will fault by itself
  if (finds && touch.visit > hot_after) return mark(touch.access, access_was_hot), false;
  if ((access.flags & access_is_hot) != 0 && touch.visit > visits_when_hot) return false;
  if (is_nobody_else_left()) return !may_leave_alone;
  if (finds) record_touch(touch.access, address, access);
  if (finds && (access.flags & access_is_known) == 0) return true;
  if (reads && writes && (access.flags & access_is_atomic) == 0 && access.size <= sizeof(uint64_t))
    take_both_steps(touch, address, access.size);
  else
    take_memory_step(touch, address, writes);
  return true;
}

}  // namespace unflake::agent
