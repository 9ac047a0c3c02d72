#include "symbols/line_program.h"

#include <dwarf.h>

#include <algorithm>

#include "symbols/cursor.h"

namespace unflake {
namespace {

struct Header {
  uint8_t step = 1;  // the shortest instruction
  bool starts_statement = true;
  int8_t line_base = 0;
  uint8_t line_range = 1;
  uint8_t first_special = 13;
  std::vector<uint8_t> operands;  // of the standard opcodes, from 1
};

class Program {
 public:
  Program(Header header, std::span<const uint8_t> code)
      : header_(std::move(header)), cursor_(code) {}

  std::vector<LineSequence> run() {
    reset();
    while (cursor_.left() > 0 && cursor_.ok()) step();
    return std::move(sequences_);
  }

 private:
  void reset() {
    row_ = {};
    row_.file = 1;
    row_.line = 1;
    row_.is_statement = header_.starts_statement;
    sequence_.clear();
  }

  void step() {
    const uint8_t opcode = cursor_.take<uint8_t>();
    if (opcode >= header_.first_special) return special(opcode);
    if (opcode == 0) return extended();
    standard(opcode);
  }

  void special(uint8_t opcode) {
    const int adjusted = opcode - header_.first_special;
    row_.address += uint64_t{header_.step} * (adjusted / header_.line_range);
    add_lines(header_.line_base + adjusted % header_.line_range);
    sequence_.push_back(row_);
  }

  void add_lines(int64_t count) {
    row_.line = static_cast<int>(static_cast<uint32_t>(row_.line) + static_cast<uint32_t>(count));
  }

  void standard(uint8_t opcode) {
    switch (opcode) {
      case DW_LNS_copy:
        sequence_.push_back(row_);
        return;
      case DW_LNS_advance_pc:
        row_.address += header_.step * cursor_.take_unsigned();
        return;
      case DW_LNS_advance_line:
        return add_lines(cursor_.take_signed());
      case DW_LNS_set_file:
        row_.file = static_cast<uint32_t>(cursor_.take_unsigned());
        return;
      case DW_LNS_negate_stmt:
        row_.is_statement = !row_.is_statement;
        return;
      case DW_LNS_const_add_pc:
        row_.address +=
            uint64_t{header_.step} * ((255 - header_.first_special) / header_.line_range);
        return;
      case DW_LNS_fixed_advance_pc:
        row_.address += cursor_.take<uint16_t>();
        return;
      default:
        for (int i = 0; i < header_.operands[opcode - 1]; ++i) cursor_.take_unsigned();
    }
  }

  void extended() {
    const uint64_t length = cursor_.take_unsigned();
    if (length == 0 || length > cursor_.left()) return cursor_.skip(length);
    const uint8_t opcode = cursor_.take<uint8_t>();
    if (opcode == DW_LNE_end_sequence) end_sequence();
    if (opcode == DW_LNE_set_address && length == 9)
      row_.address = cursor_.take<uint64_t>();
    else
      cursor_.skip(length - 1);
  }

  void end_sequence() {
    row_.is_end = true;
    sequence_.push_back(row_);
    std::stable_sort(sequence_.begin(), sequence_.end(),
                     [](const auto& a, const auto& b) { return a.address < b.address; });
    sequences_.push_back(std::move(sequence_));
    reset();
  }

  Header header_;
  Cursor cursor_;
  LineEntry row_;
  LineSequence sequence_;
  std::vector<LineSequence> sequences_;
};

}  // namespace

std::vector<LineSequence> read_line_program(std::span<const uint8_t> section, uint64_t offset) {
  if (offset >= section.size()) return {};
  Cursor cursor(section.subspan(offset));
  uint64_t length = cursor.take<uint32_t>();
  const bool is_wide = length == 0xffffffff;
  if (is_wide) length = cursor.take<uint64_t>();
  if (length > cursor.left()) return {};
  const size_t end = cursor.at() + length;
  const uint16_t version = cursor.take<uint16_t>();
  if (version < 2 || version > 5) return {};
  if (version == 5) cursor.skip(2);  // sizes of addresses and segments
  const uint64_t header_length = is_wide ? cursor.take<uint64_t>() : cursor.take<uint32_t>();
  if (!cursor.ok() || header_length > cursor.left()) return {};
  const size_t code = cursor.at() + header_length;
  Header header;
  header.step = cursor.take<uint8_t>();
  if (version >= 4) cursor.skip(1);  // operations of an instruction: one
  header.starts_statement = cursor.take<uint8_t>() != 0;
  header.line_base = cursor.take<int8_t>();
  header.line_range = std::max<uint8_t>(cursor.take<uint8_t>(), 1);
  header.first_special = std::max<uint8_t>(cursor.take<uint8_t>(), 1);
  for (int i = 1; i < header.first_special; ++i) header.operands.push_back(cursor.take<uint8_t>());
  if (!cursor.ok() || code > end) return {};
  return Program(std::move(header), section.subspan(offset + code, end - code)).run();
}

}  // namespace unflake
