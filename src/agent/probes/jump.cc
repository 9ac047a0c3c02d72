#include <linux/membarrier.h>
#include <string.h>

#include "agent/probes/probed_image.h"
#include "agent/raw.h"

namespace unflake::agent {
namespace {

using protocol::Probe;

constexpr uint8_t breakpoint = 0xcc;
constexpr uint8_t jump_opcode = 0xe9;
constexpr uint64_t jump_size = sizeof(JumpSlot::original);

// Where the moved instructions begin.
constexpr uint64_t behind_counting = 16, behind_asking = 39;

bool is_call(const Probe& probe) {
  return (probe.flags & protocol::probe_of_call) != 0;
}

uint64_t moved_at(const Probe& probe) {
  return is_call(probe) ? behind_asking : behind_counting;
}

// Writes instructions, one after the other.
class Assembler {
 public:
  explicit Assembler(JumpSlot& slot) : slot_(slot) {}

  void bytes(const uint8_t* from, uint64_t size) {
    if (size > sizeof slot_.code - at_) fits_ = false;
    if (!fits_) return;
    memcpy(slot_.code + at_, from, size);
    at_ += size;
  }
  template <class... Bytes>
  void put(Bytes... values) {
    const uint8_t all[] = {static_cast<uint8_t>(values)...};
    bytes(all, sizeof all);
  }
  // A displacement, with so many bytes of its instruction behind it.
  void relative(const void* target, int behind = 0) {
    const auto next = reinterpret_cast<int64_t>(slot_.code + at_ + sizeof(int32_t)) + behind;
    const int64_t distance = reinterpret_cast<int64_t>(target) - next;
    const auto narrow = static_cast<int32_t>(distance);
    fits_ = fits_ && narrow == distance;
    uint8_t written[sizeof narrow];
    memcpy(written, &narrow, sizeof narrow);
    bytes(written, sizeof written);
  }
  uint64_t at() const { return at_; }
  bool fits() const { return fits_; }

 private:
  JumpSlot& slot_;
  uint64_t at_ = 0;
  bool fits_ = true;
};

void count_entry(Assembler& out, const Probe& probe, const JumpNotes& notes) {
  const uint8_t behind_moved = static_cast<uint8_t>(probe.moved.size + jump_size);
  out.put(0xc6, 0x05), out.relative(notes.hits, 1), out.put(1);  // movb $1, hits
  out.put(0x66, 0xff, 0x05), out.relative(notes.calls);          // incw calls
  out.put(0x78, behind_moved);                                   // js hot
}

// Traps for a caller that is no known stranger. Flags and r11 are nobody's where a library is
// entered: the dynamic linker may change them there, too.
void ask_for_caller(Assembler& out, const JumpNotes& notes) {
  constexpr uint32_t last = sizeof notes.strangers->callers / sizeof(uint64_t) - 1;
  const auto to_moved = [&] { return static_cast<uint8_t>(behind_asking - out.at() - 2); };
  out.put(0x80, 0x3d), out.relative(notes.hits, 1), out.put(0);  // cmpb $0, hits
  out.put(0x75, to_moved());                                     // jne moved
  out.put(0x4c, 0x8b, 0x1c, 0x24);                               // mov (%rsp), %r11
  out.put(0x50, 0x51);                                           // push %rax; push %rcx
  out.put(0x44, 0x89, 0xd8);                                     // mov %r11d, %eax
  out.put(0x25, last & 0xff, last >> 8, 0, 0);                   // and $last, %eax
  out.put(0x48, 0x8d, 0x0d), out.relative(notes.strangers);      // lea strangers, %rcx
  out.put(0x4c, 0x3b, 0x1c, 0xc1);                               // cmp (%rcx,%rax,8), %r11
  out.put(0x59, 0x58);                                           // pop %rcx; pop %rax
  out.put(0x74, to_moved());                                     // je moved
  out.put(breakpoint);
}

void move(Assembler& out, const Probe& probe, const uint8_t* code) {
  const uint8_t relative = probe.moved.relative;
  if (relative == 0) return out.bytes(code, probe.moved.size);
  int32_t displacement;
  memcpy(&displacement, code + relative, sizeof displacement);
  const int behind = probe.moved.size - relative - static_cast<int>(sizeof displacement);
  const uint8_t* target = code + probe.moved.size + displacement;
  out.bytes(code, relative);
  out.relative(target, behind);
  out.bytes(code + probe.moved.size - behind, static_cast<uint64_t>(behind));
}

// A terminating instruction may end before the five bytes do; nobody comes to what follows it.
bool well_formed(const Probe& probe) {
  return probe.moved.size > 0 &&
         (probe.moved.relative == 0 || probe.moved.relative + 4 <= probe.moved.size);
}

}  // namespace

bool may_jump(const Probe& probe) {
  constexpr uint8_t others = protocol::probe_reports_failure | protocol::probe_accesses;
  constexpr uint8_t once = protocol::probe_one_shot | protocol::probe_of_call;
  return (probe.flags & protocol::probe_may_jump) != 0 && (probe.flags & others) == 0 &&
         (probe.flags & once) != 0 && probe.site == protocol::none && well_formed(probe);
}

bool fill_jump(JumpSlot& slot, const Probe& probe, uint32_t number, const uint8_t* code,
               const JumpNotes& notes) {
  Assembler out(slot);
  if (is_call(probe))
    ask_for_caller(out, notes);
  else
    count_entry(out, probe, notes);
  move(out, probe, code);
  out.put(jump_opcode), out.relative(code + probe.moved.size);
  if (!is_call(probe)) {
    out.put(breakpoint);  // hot
    const int back = static_cast<int>(behind_counting) - static_cast<int>(out.at() + 2);
    out.put(0xeb, static_cast<uint8_t>(back));
  }
  slot.probe = number;
  memcpy(slot.original, code, sizeof slot.original);
  const int64_t distance =
      reinterpret_cast<int64_t>(slot.code) - reinterpret_cast<int64_t>(code + jump_size);
  return out.fits() && distance == static_cast<int32_t>(distance);
}

void write_jump(const JumpSlot& slot, uint8_t* code) {
  const auto distance = static_cast<int32_t>(reinterpret_cast<int64_t>(slot.code) -
                                             reinterpret_cast<int64_t>(code + jump_size));
  code[0] = jump_opcode;
  memcpy(code + 1, &distance, sizeof distance);
}

void remember_stranger(Strangers& strangers, uint64_t caller) {
  constexpr size_t count = sizeof strangers.callers / sizeof(uint64_t);
  __atomic_store_n(&strangers.callers[caller % count], caller, __ATOMIC_RELAXED);
}

uint64_t moved_code(const JumpSlot& slot, const Probe& probe) {
  return reinterpret_cast<uint64_t>(slot.code) + moved_at(probe);
}

uint64_t program_address(const JumpSlot& slot, const Probe& probe, uint64_t address, uint64_t rip) {
  const uint64_t done = rip - moved_code(slot, probe);  // a large number before the first
  return done <= probe.moved.size ? address + done : address;
}

namespace {

// One thread at a time. In a forked child a holder of the parent process is nobody.
protocol::Shared<uint32_t> remover;

bool synchronise_cores() {
  constexpr long prepare = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;
  constexpr long now = MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;
  return !failed(raw_syscall(__NR_membarrier, prepare, 0)) &&
         !failed(raw_syscall(__NR_membarrier, now, 0));
}

// As the kernel patches itself: a breakpoint first, whoever hits it knows the way; then what is
// behind it, and its own byte last, such that no core sees a mixture.
bool replace_jump(const JumpSlot& slot, uint64_t address) {
  return synchronise_cores() && write_code(address, breakpoint) && synchronise_cores() &&
         write_code(address + 1, slot.original + 1, sizeof slot.original - 1) &&
         synchronise_cores() && write_code(address, slot.original[0]);
}

}  // namespace

bool remove_jump(const JumpSlot& slot, uint64_t address) {
  const auto process = static_cast<uint32_t>(raw_syscall(__NR_getpid));
  const uint32_t other = remover.load();
  if (other == process || !remover.change(other, process)) return false;
  const bool removed = replace_jump(slot, address);
  remover.store(0);
  return removed;
}

}  // namespace unflake::agent
