#include "symbols/probe_plan.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <optional>

#include "symbols/entry_jumps.h"

namespace unflake {
namespace {

using protocol::ProbeKind;

constexpr uint8_t stack_pointer = 4;

ZydisDecoder make_decoder() {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return decoder;
}

bool is_relative_branch(const ZydisDecodedInstruction& instruction) {
  return instruction.raw.imm[0].is_relative != 0;
}

bool addresses_memory_from_here(const ZydisDecodedInstruction& instruction) {
  return (instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && instruction.raw.modrm.mod == 0 &&
         instruction.raw.modrm.rm == 5;
}

// Of an indirect call, which pushes the return address before the copy reads its operand: whether
// the operand can still be addressed then, 8 bytes further from the stack pointer.
bool survives_push(const ZydisDecodedInstruction& instruction) {
  const auto& modrm = instruction.raw.modrm;
  const bool extended = instruction.raw.rex.B != 0;
  if (modrm.mod == 3) return modrm.rm != stack_pointer || extended;
  if (modrm.rm != 4 || instruction.raw.sib.base != stack_pointer || extended) return true;
  const int64_t displacement = instruction.raw.disp.value;
  return modrm.mod != 0 && displacement >= 0 && (modrm.mod == 2 || displacement + 8 <= INT8_MAX);
}

std::string_view why_never(const ZydisDecodedInstruction& instruction) {
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_INT3:
      return "there is a breakpoint already";
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
      return "a software interrupt";
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
      return "a jump on rcx";
    case ZYDIS_MNEMONIC_XBEGIN:
      return "begins a hardware transaction";
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_UIRET:
      return "returns from or to the kernel";
    default:
      break;
  }
  if (instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return "a far branch";
  if (is_relative_branch(instruction) && instruction.raw.imm[0].size == 16)
    return "a branch that cuts the instruction pointer";
  if (addresses_memory_from_here(instruction) && instruction.address_width != 64)
    return "a 32-bit address relative to the instruction";
  return {};
}

void become(Displaced& displaced, ProbeKind kind, uint8_t aux = 0, int64_t target = 0) {
  displaced.kind = kind;
  displaced.aux = aux;
  displaced.target = static_cast<int32_t>(target);
}

void displace_call(const ZydisDecodedInstruction& instruction, Displaced& displaced) {
  if (is_relative_branch(instruction))
    become(displaced, ProbeKind::call, 0, instruction.raw.imm[0].value.s);
  else if (survives_push(instruction))
    become(displaced, ProbeKind::call_indirect, instruction.raw.modrm.offset);
  else
    displaced.refusal = "calls through the stack pointer";
}

// False: not one of those that are emulated.
bool displace_emulated(const ZydisDecodedInstruction& instruction, Displaced& displaced) {
  const bool relative = is_relative_branch(instruction);
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
      displace_call(instruction, displaced);
      return true;
    case ZYDIS_MNEMONIC_JMP:
      if (relative) become(displaced, ProbeKind::jump, 0, instruction.raw.imm[0].value.s);
      return relative;
    case ZYDIS_MNEMONIC_RET:
      become(displaced, ProbeKind::ret, 0, static_cast<int64_t>(instruction.raw.imm[0].value.u));
      return true;
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_ENDBR32:
      become(displaced, ProbeKind::nothing);
      return true;
    default:
      break;
  }
  if (!relative) return false;
  if (instruction.meta.category != ZYDIS_CATEGORY_COND_BR)
    displaced.refusal = "an unusual branch";
  else
    become(displaced, ProbeKind::jump_if, instruction.opcode & 0x0f,
           instruction.raw.imm[0].value.s);
  return true;
}

}  // namespace

Displaced displace(std::span<const uint8_t> code) {
  static const ZydisDecoder decoder = make_decoder();
  ZydisDecodedInstruction instruction;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data(), code.size(), &instruction)))
    return {.refusal = "no instruction"};
  Displaced displaced;
  displaced.length = instruction.length;
  displaced.refusal = why_never(instruction);
  if (!displaced.refusal.empty() || displace_emulated(instruction, displaced)) return displaced;
  if (code[0] == 0x55 && instruction.length == 1)
    become(displaced, ProbeKind::push_rbp);
  else if (addresses_memory_from_here(instruction))
    become(displaced, ProbeKind::copy_relative, instruction.raw.disp.offset);
  return displaced;
}

namespace {

constexpr size_t longest_instruction = 15;
constexpr int deepest_outer = 16;

using Functions = std::span<const Function>;

struct Bounds {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Assembly may leave out a function's size: it then ends where the next one begins.
Bounds extent_of(Functions functions, Functions::iterator function) {
  const auto next = std::find_if(function, functions.end(), [&](const Function& other) {
    return other.start > function->start;
  });
  if (function->size == 0 && next != functions.end()) return {function->start, next->start};
  return {function->start, function->start + function->size};
}

// The function that an address is in. Functions may be nested, by labels in assembly.
Bounds extent_around(const Image& image, uint64_t address) {
  const Functions functions = image.functions();
  auto function =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](uint64_t wanted, const Function& other) { return wanted < other.start; });
  for (int i = 0; i < deepest_outer && function != functions.begin(); ++i) {
    const Bounds extent = extent_of(functions, --function);
    if (address < extent.end) return extent;
  }
  return {};
}

// Disassembles one function, an instruction at a time.
class Sweep {
 public:
  Sweep() = default;
  Sweep(const Image& image, const Bounds& extent)
      : code_(image.code_at(extent.start, extent.end - extent.start)), start_(extent.start) {
    decode();
  }

  uint64_t address() const { return start_ + position_; }
  uint64_t end() const { return start_ + code_.size(); }
  std::span<const uint8_t> bytes() const { return code_.subspan(position_); }
  const Displaced& instruction() const { return instruction_; }
  bool lost() const { return instruction_.length == 0; }

  void next() {
    position_ += instruction_.length;
    decode();
  }

 private:
  void decode() { instruction_ = position_ < code_.size() ? displace(bytes()) : Displaced{}; }

  std::span<const uint8_t> code_;
  uint64_t start_ = 0;
  size_t position_ = 0;
  Displaced instruction_;
};

void add(ProbePlan& plan, const ProbeRequest& request, uint64_t address,
         const Displaced& instruction, uint8_t first_byte) {
  if (!instruction.refusal.empty()) {
    plan.unprobeable.push_back({address, instruction.refusal});
    return;
  }
  plan.probes.push_back({.address = protocol::make_address(request.image, address),
                         .target = instruction.target,
                         .site = protocol::none,
                         .length = instruction.length,
                         .kind = instruction.kind,
                         .aux = instruction.aux,
                         .flags = request.flags,
                         .first_byte = first_byte,
                         .sign = {}});
}

void add_at(ProbePlan& plan, const ProbeRequest& request, uint64_t address, Sweep& sweep) {
  while (!sweep.lost() && sweep.address() < address) sweep.next();
  if (sweep.address() > address)
    plan.unprobeable.push_back({address, "in the middle of an instruction"});
  else if (sweep.lost())
    plan.unprobeable.push_back({address, "after bytes that are not instructions"});
  else
    add(plan, request, address, sweep.instruction(), sweep.bytes().front());
}

std::vector<uint64_t> ordered(std::vector<uint64_t> addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

ProbePlan refuse_all(std::span<const uint64_t> addresses, std::string_view reason) {
  ProbePlan plan;
  for (const uint64_t address : addresses) plan.unprobeable.push_back({address, reason});
  return plan;
}

}  // namespace

std::string_view why_never_probed(std::string_view path) {
  static constexpr std::array taboo = {
      std::pair{"libc.so", "the C library"},
      std::pair{"libc-", "the C library"},
      std::pair{"ld-", "the dynamic linker"},
      std::pair{"libpthread", "the C library"},
      std::pair{"libunflake-agent", "unflake's agent"},
      std::pair{"libasan", "a sanitizer's run-time"},
      std::pair{"libtsan", "a sanitizer's run-time"},
      std::pair{"libubsan", "a sanitizer's run-time"},
      std::pair{"liblsan", "a sanitizer's run-time"},
      std::pair{"libhwasan", "a sanitizer's run-time"},
      std::pair{"libclang_rt.", "a sanitizer's run-time"},
      std::pair{"linux-vdso", "a part of the kernel"},
  };
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const auto& [prefix, reason] : taboo)
    if (name.starts_with(prefix)) return reason;
  return {};
}

ProbePlan plan_probes(const Image& image, std::span<const uint64_t> addresses,
                      const ProbeRequest& request) {
  const std::vector<uint64_t> places = ordered({addresses.begin(), addresses.end()});
  if (const auto reason = why_never_probed(image.path()); !reason.empty())
    return refuse_all(places, reason);
  ProbePlan plan;
  Bounds extent;
  Sweep sweep;
  for (const uint64_t address : places) {
    if (address >= extent.end) {
      extent = extent_around(image, address);
      sweep = Sweep(image, extent);
    }
    if (extent.end == 0)
      plan.unprobeable.push_back({address, "in no known function"});
    else
      add_at(plan, request, address, sweep);
  }
  return plan;
}

namespace {

constexpr uint8_t may_become_jumps = protocol::probe_one_shot | protocol::probe_of_call;

// Nobody comes to the middle of an entry of a procedure linkage table.
std::span<const Function> who_may_come(const Image& image, uint8_t flags) {
  return (flags & protocol::probe_of_call) != 0 ? std::span<const Function>() : image.functions();
}

// Where a jump would do instead of a breakpoint, it costs a thousandth.
void allow_jumps(const Image& image, uint8_t flags, std::vector<protocol::Probe>& probes) {
  const EntryJumps jumps(image, who_may_come(image, flags));
  for (protocol::Probe& probe : probes)
    if (const auto moved = jumps.at(protocol::offset_of(probe.address))) {
      probe.moved = *moved;
      probe.flags |= protocol::probe_may_jump;
    }
}

}  // namespace

ProbePlan plan_entries(const Image& image, std::span<const Function> functions,
                       const ProbeRequest& request) {
  std::vector<uint64_t> entries;
  entries.reserve(functions.size());
  for (const Function& function : functions) entries.push_back(function.start);
  entries = ordered(std::move(entries));
  if (const auto reason = why_never_probed(image.path()); !reason.empty())
    return refuse_all(entries, reason);
  ProbePlan plan;
  plan.probes.reserve(entries.size());
  for (const uint64_t entry : entries) {
    const auto code = image.code_at(entry, longest_instruction);
    if (code.empty())
      plan.unprobeable.push_back({entry, "no code in the file"});
    else
      add(plan, request, entry, displace(code), code.front());
  }
  if ((request.flags & may_become_jumps) != 0) allow_jumps(image, request.flags, plan.probes);
  return plan;
}

std::vector<uint64_t> line_addresses(const Image& image,
                                     const std::function<bool(const Function&)>& wanted) {
  std::vector<uint64_t> addresses;
  const auto rows = image.lines();
  const Functions functions = image.functions();
  for (auto function = functions.begin(); function != functions.end(); ++function) {
    if (!wanted(*function)) continue;
    const Bounds extent = extent_of(functions, function);
    auto row = std::lower_bound(
        rows.begin(), rows.end(), extent.start,
        [](const LineRow& left, uint64_t address) { return left.address < address; });
    for (; row != rows.end() && row->address < extent.end; ++row)
      if (row->line > 0) addresses.push_back(row->address);
  }
  return ordered(std::move(addresses));
}

std::vector<uint64_t> instruction_addresses(const Image& image, const Function& function) {
  std::vector<uint64_t> addresses;
  for (Sweep sweep(image, {function.start, function.start + function.size}); !sweep.lost();
       sweep.next())
    addresses.push_back(sweep.address());
  return addresses;
}

namespace {

using Operands = ZydisDecodedOperand[ZYDIS_MAX_OPERAND_COUNT];

bool is_told(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM &&
         operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
         operand.mem.segment != ZYDIS_REGISTER_FS && operand.mem.segment != ZYDIS_REGISTER_GS &&
         operand.size >= 8 && operand.size <= 512;
}

std::optional<uint8_t> number_of(ZydisRegister name) {
  if (name == ZYDIS_REGISTER_NONE) return protocol::no_register;
  if (ZydisRegisterGetClass(name) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
  return static_cast<uint8_t>(ZydisRegisterGetId(name));
}

uint8_t flags_of(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand& operand) {
  uint8_t flags = 0;
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0) flags |= protocol::access_reads;
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) flags |= protocol::access_writes;
  if ((instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 ||
      instruction.mnemonic == ZYDIS_MNEMONIC_XCHG)
    flags |= protocol::access_is_atomic;
  return flags;
}

std::optional<protocol::PlanAccess> access_by(const ZydisDecodedInstruction& instruction,
                                              const ZydisDecodedOperand& operand,
                                              uint64_t address) {
  protocol::PlanAccess access{};
  access.flags = flags_of(instruction, operand);
  access.size = static_cast<uint8_t>(operand.size / 8);
  access.scale = operand.mem.scale;
  access.displacement = operand.mem.disp.has_displacement ? operand.mem.disp.value : 0;
  if (operand.mem.base == ZYDIS_REGISTER_RIP) {
    access.displacement += static_cast<int64_t>(address + instruction.length);
    access.flags |= protocol::access_in_image;
    access.base = access.index = protocol::no_register;
    return access;
  }
  const auto base = number_of(operand.mem.base), index = number_of(operand.mem.index);
  if (!base || !index) return std::nullopt;
  access.base = *base;
  access.index = *index;
  return access;
}

std::optional<protocol::PlanAccess> access_of(std::span<const uint8_t> code, uint64_t address) {
  static const ZydisDecoder decoder = make_decoder();
  ZydisDecodedInstruction instruction;
  Operands operands;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands)) ||
      instruction.mnemonic == ZYDIS_MNEMONIC_NOP)
    return std::nullopt;
  for (uint8_t i = 0; i < instruction.operand_count_visible; ++i)
    if (is_told(operands[i])) return access_by(instruction, operands[i], address);
  return std::nullopt;
}

bool is_copied(const Displaced& instruction) {
  return instruction.refusal.empty() &&
         (instruction.kind == ProbeKind::copy || instruction.kind == ProbeKind::copy_relative);
}

}  // namespace

std::vector<MemoryAccess> memory_accesses(const Image& image, const Function& function) {
  std::vector<MemoryAccess> accesses;
  for (Sweep sweep(image, {function.start, function.start + function.size}); !sweep.lost();
       sweep.next()) {
    if (!is_copied(sweep.instruction())) continue;
    if (const auto access = access_of(sweep.bytes(), sweep.address()))
      accesses.push_back({sweep.address(), *access});
  }
  return accesses;
}

}  // namespace unflake
