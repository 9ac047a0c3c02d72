#include "symbols/entry_jumps.h"

#include <Zydis/Zydis.h>

#include <algorithm>

#include "symbols/probe_plan.h"

namespace unflake {
namespace {

using protocol::MovedCode;
using protocol::ProbeKind;

constexpr uint64_t jump_size = 5;
constexpr size_t longest_code = 15;
constexpr size_t most_moved = 15;
constexpr ZydisAccessedFlagsMask arithmetic = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF |
                                              ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |
                                              ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;

using CodeBytes = std::span<const uint8_t>;

std::optional<ZydisDecodedInstruction> decode(CodeBytes code) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  ZydisDecodedInstruction instruction;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data(), code.size(), &instruction)))
    return std::nullopt;
  return instruction;
}

bool is_relative(const ZydisDecodedInstruction& instruction) {
  return instruction.raw.imm[0].is_relative != 0;
}

bool is_jump_anywhere(const ZydisDecodedInstruction& instruction) {
  return instruction.mnemonic == ZYDIS_MNEMONIC_JMP && !is_relative(instruction);
}

bool is_end(const ZydisDecodedInstruction& instruction) {
  return instruction.mnemonic == ZYDIS_MNEMONIC_JMP || instruction.mnemonic == ZYDIS_MNEMONIC_RET;
}

bool looks_at_flags(const ZydisDecodedInstruction& instruction) {
  return instruction.cpu_flags != nullptr && (instruction.cpu_flags->tested & arithmetic) != 0;
}

bool sets_all_flags(const ZydisDecodedInstruction& instruction) {
  if (instruction.cpu_flags == nullptr) return false;
  const auto& flags = *instruction.cpu_flags;
  return ((flags.modified | flags.set_0 | flags.set_1 | flags.undefined) & arithmetic) ==
         arithmetic;
}

// Compiled code never does: flags say nothing when a function is called. Assembly might.
bool expects_flags(CodeBytes code) {
  constexpr int most = 16;
  for (int i = 0; i < most && !code.empty(); ++i) {
    const auto instruction = decode(code);
    if (!instruction) return false;
    if (looks_at_flags(*instruction)) return true;
    if (sets_all_flags(*instruction) || is_end(*instruction) ||
        instruction->mnemonic == ZYDIS_MNEMONIC_CALL)
      return false;
    code = code.subspan(instruction->length);
  }
  return false;
}

// Does the same wherever it is, once its displacement is put right.
bool can_move(const ZydisDecodedInstruction& instruction, const Displaced& displaced) {
  switch (displaced.kind) {
    case ProbeKind::copy:
    case ProbeKind::copy_relative:
    case ProbeKind::ret:
    case ProbeKind::push_rbp:
    case ProbeKind::nothing:
      return true;
    case ProbeKind::jump:
      return instruction.raw.imm[0].size == 32;
    default:
      return false;
  }
}

uint8_t displacement_in(const ZydisDecodedInstruction& instruction, const Displaced& displaced) {
  if (displaced.kind == ProbeKind::copy_relative) return displaced.aux;
  return displaced.kind == ProbeKind::jump ? instruction.raw.imm[0].offset : 0;
}

void make_ordered(std::vector<uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

EntryJumps::EntryJumps(const Image& image, std::span<const Function> functions) : image_(image) {
  for (const Function& function : functions) look_through(function);
  make_ordered(targets_);
  make_ordered(unsure_);
}

void EntryJumps::look_through(const Function& function) {
  targets_.push_back(function.start);
  uint64_t address = function.start;
  CodeBytes code = image_.code_at(function.start, function.size);
  while (!code.empty()) {
    const auto instruction = decode(code);
    if (!instruction || is_jump_anywhere(*instruction)) unsure_.push_back(function.start);
    if (!instruction) return;
    address += instruction->length;
    if (is_relative(*instruction))
      targets_.push_back(address + static_cast<uint64_t>(instruction->raw.imm[0].value.s));
    code = code.subspan(instruction->length);
  }
}

bool EntryJumps::is_entered_behind(uint64_t entry) const {
  const auto next = std::upper_bound(targets_.begin(), targets_.end(), entry);
  return next != targets_.end() && *next < entry + jump_size;
}

bool EntryJumps::jumps_anywhere(uint64_t entry) const {
  return std::binary_search(unsure_.begin(), unsure_.end(), entry);
}

bool EntryJumps::is_padding(uint64_t address, uint64_t end) const {
  while (address < end) {
    const CodeBytes code = image_.code_at(address, longest_code);
    const auto instruction = decode(code);
    if (!instruction || (instruction->mnemonic != ZYDIS_MNEMONIC_NOP &&
                         instruction->mnemonic != ZYDIS_MNEMONIC_INT3))
      return false;
    address += instruction->length;
  }
  return true;
}

std::optional<MovedCode> EntryJumps::at(uint64_t entry) const {
  if (is_entered_behind(entry) || expects_flags(image_.code_at(entry, 8 * longest_code)))
    return std::nullopt;
  MovedCode moved{};
  for (bool is_first = true; moved.size < jump_size; is_first = false) {
    if (!is_first && jumps_anywhere(entry)) return std::nullopt;
    const CodeBytes code = image_.code_at(entry + moved.size, longest_code);
    const auto instruction = decode(code);
    if (!instruction) return std::nullopt;
    const Displaced displaced = displace(code);
    if (!displaced.refusal.empty() || !can_move(*instruction, displaced)) return std::nullopt;
    if (const uint8_t inside = displacement_in(*instruction, displaced); inside != 0)
      moved.relative = static_cast<uint8_t>(moved.size + inside);
    moved.size = static_cast<uint8_t>(moved.size + displaced.length);
    if (moved.size > most_moved) return std::nullopt;
    if (!is_end(*instruction)) continue;
    if (!is_padding(entry + moved.size, entry + jump_size)) return std::nullopt;
    break;
  }
  return moved;
}

}  // namespace unflake
