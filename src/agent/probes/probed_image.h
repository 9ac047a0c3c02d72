#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "agent/record/images.h"
#include "protocol/agent_protocol.h"

namespace unflake::agent {

// The copy of a displaced instruction, and the way back.
struct Slot {
  uint8_t code[20];
  uint32_t probe;
};

// Where a jump at a function's entry leads to: it notes the call, does what was there, and goes on
// behind it.
struct JumpSlot {
  uint8_t code[55];
  uint8_t original[5];  // what the jump has taken the place of
  uint32_t probe;
};
static_assert(sizeof(JumpSlot) == 64);

// Return addresses of calls of other libraries that a framework makes and nobody of the project, by
// their last bits. Two that share a place trap in turn, and in a loop over all tests of a program
// that would be hundreds of times: so there are many more places than callers.
struct Strangers {
  uint64_t callers[1 << 16];
};
static_assert(sizeof(Strangers) % protocol::page == 0);

// What a jump's code looks at and may change. An entry counts, and traps when it is hot: then the
// jump is taken out. A call traps when its caller is no known stranger.
struct JumpNotes {
  uint16_t* calls = nullptr;  // from `cool` on
  const Strangers* strangers = nullptr;
  protocol::Shared<uint32_t>* hits = nullptr;
};

// Where the instruction of a probe is executed.
enum Place : uint32_t {
  not_installed,
  emulated,
  first_slot,                // and the number of the slot is what it exceeds this by
  first_jump = 0x8000'0000,  // the same of a jump
};

// An image of the plan with its probes. Hits read it in any thread while the dynamic linker's
// thread writes it, and only images whose code is not running change.
struct ProbedImage {
  uint64_t start = 0;  // of the probed code
  uint64_t end = 0;    // 0: not loaded
  uint64_t bias = 0;
  const void* identity = nullptr;
  LoadedFile file{};
  uint32_t first = 0;  // in the plan's probes
  uint32_t count = 0;
  uint32_t slot_count = 0;
  uint32_t jump_count = 0;
  Slot* slots = nullptr;
  JumpSlot* jumps = nullptr;
  uint32_t* places = nullptr;   // a Place for each probe
  uint32_t* buckets = nullptr;  // the first probe at or after start + (n << bucket_shift)
  uint32_t bucket_shift = 0;
  uint16_t* calls = nullptr;       // of each jump
  Strangers* strangers = nullptr;  // shared with all processes that are forked from here
  char* hits = nullptr;            // pages that hold the counters of its probes
  uint64_t hits_size = 0;
  uint64_t memory_size = 0;
};

// Puts all probes of the plan that belong to image `number` into the file. Says what it had to
// leave out through process_degraded().
void add_probes(ProbedImage& image, uint32_t number, const LoadedFile& file);

// Probes of memory accesses are left out until this is called, and come back when it is called
// again.
void arm_accesses(ProbedImage& image);

// After the image was unloaded.
void forget(ProbedImage& image);

// The memory of the run was mapped after the probes were put in: jumps note calls there from now
// on. False: that is not possible.
bool bind_hits(const ProbedImage& image);

// Takes out the probes, which are those of the plan that is given, and forgets the image.
void remove_probes(ProbedImage& image, const protocol::Probe* planned);

// The probe at an address, as a number in the plan's probes; none: no probe of this image.
uint32_t find_probe(const ProbedImage& image, uint64_t address);

inline bool is_loaded(const ProbedImage& image) {
  return __atomic_load_n(&image.end, __ATOMIC_ACQUIRE) != 0;
}

// Whether the instruction is executed in a copy. A one-shot probe never needs one: it is gone by
// then.
bool needs_slot(const protocol::Probe& probe);

// Copies the instruction at `code`, such that it does there what it did here. False: the slot is
// too far away for that.
bool fill_slot(Slot& slot, uint32_t number, const protocol::Probe& probe, const uint8_t* code);

// Writable memory that code between `start` and `end` reaches with 32-bit displacements, or
// nullptr.
char* map_near(uint64_t start, uint64_t end, uint64_t size);

// What a probe does to the registers of the thread that hit it, so that the displaced instruction
// takes place.

// Does what the instruction at `address` would have done.
void emulate(const protocol::Probe& probe, uint64_t address, gregset_t& registers);

// Sends the thread to the copy of the instruction.
void enter_copy(const protocol::Probe& probe, uint64_t address, const uint8_t* copy,
                gregset_t& registers);

// Brings a thread back that was interrupted `progress` bytes into the copy.
void leave_copy(const protocol::Probe& probe, uint64_t address, uint64_t progress,
                gregset_t& registers);

// Jumps at entries.

bool may_jump(const protocol::Probe& probe);

// Writes the code for the probe whose instructions are at `code`. False: not possible.
bool fill_jump(JumpSlot& slot, const protocol::Probe& probe, uint32_t number, const uint8_t* code,
               const JumpNotes& notes);

void write_jump(const JumpSlot& slot, uint8_t* code);

void remember_stranger(Strangers& strangers, uint64_t caller);

// The instructions that were at the entry.
uint64_t moved_code(const JumpSlot& slot, const protocol::Probe& probe);

// Where the program believes a thread to be that is `rip` in the slot.
uint64_t program_address(const JumpSlot& slot, const protocol::Probe& probe, uint64_t address,
                         uint64_t rip);

inline constexpr uint16_t cool = 0x6000;  // a jump is hot when this has grown to 0x8000

// Takes a jump out while other threads may come to it. They must know what to do when they trap at
// the entry meanwhile. False: not now.
bool remove_jump(const JumpSlot& slot, uint64_t address);

// Gets ready to write often.
void prepare_to_write_code();

// Writes one byte into code that may be running in other threads. False: it was not possible.
bool write_code(uint64_t address, uint8_t byte);

// The same for several, which no thread may be about to execute.
bool write_code(uint64_t address, const uint8_t* bytes, size_t size);

}  // namespace unflake::agent
