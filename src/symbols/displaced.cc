#include "symbols/displaced.h"

#include <Zydis/Zydis.h>

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

}  // namespace unflake
