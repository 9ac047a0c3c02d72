#include "symbols/dwarf.h"

#include <dwarf.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "symbols/elf_file.h"

namespace unflake {

std::string normal_path(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..")
      parts.pop_back();
    else if (part != ".." || !absolute)
      parts.push_back(part);
  }
  std::string normal = absolute ? "/" : "";
  for (const std::string_view part : parts) {
    if (!normal.empty() && !normal.ends_with('/')) normal += '/';
    normal += part;
  }
  return normal;
}

uint32_t FileTable::number_of(const char* raw) {
  if (const auto known = by_pointer_.find(raw); known != by_pointer_.end()) return known->second;
  const auto [place, is_new] = by_name_.emplace(normal_path(raw), names_.size());
  if (is_new) names_.push_back(place->first);
  by_pointer_.emplace(raw, place->second);
  return place->second;
}

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

namespace {

constexpr int farthest_line = 64;  // rows to look back for one

Dwarf_Die root_of(Dwarf_CU* unit) {
  Dwarf_Die root{};
  ::dwarf_cu_info(unit, nullptr, nullptr, &root, nullptr, nullptr, nullptr, nullptr);
  return root;
}

std::span<const uint8_t> line_section(const ElfFile& debug) {
  const auto section = debug.section_bytes(".debug_line");
  return section.empty() ? debug.section_bytes(".zdebug_line") : section;
}

std::optional<uint64_t> line_offset(Dwarf_Die unit) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  if (::dwarf_formudata(::dwarf_attr(&unit, DW_AT_stmt_list, &attribute), &offset) != 0)
    return std::nullopt;
  return offset;
}

// Without the sequences of what the linker has dropped, and one where several claim the same code:
// the linker keeps one copy of an inline function and may let the lines of the others point to it,
// where they need not even be on instruction boundaries.
template <class Sequence, class Start, class End>
std::vector<Sequence> one_of_each(std::vector<Sequence> sequences, Start start, End end) {
  std::stable_sort(sequences.begin(), sequences.end(),
                   [&](const Sequence& a, const Sequence& b) { return start(a) < start(b); });
  std::vector<Sequence> kept;
  for (Sequence& sequence : sequences)
    if (kept.empty() || start(sequence) >= end(kept.back())) kept.push_back(std::move(sequence));
  return kept;
}

}  // namespace

SourceLines::SourceLines(const Units& units, const ElfFile& debug, const ElfFile& file)
    : units_(units), file_(file), section_(line_section(debug)) {}

UnitLines SourceLines::read(const Unit& unit) const {
  UnitLines lines;
  Dwarf_Die die = unit.die;
  const auto offset = line_offset(die);
  if (!offset || ::dwarf_getsrcfiles(&die, &lines.files, &lines.file_count) != 0) return lines;
  std::vector<LineSequence> sequences = read_line_program(section_, *offset);
  std::erase_if(sequences, [&](const LineSequence& sequence) {
    return sequence.size() < 2 || !file_.is_code(sequence.front().address);
  });
  const auto start = [](const LineSequence& sequence) { return sequence.front().address; };
  const auto end = [](const LineSequence& sequence) { return sequence.back().address; };
  for (const LineSequence& sequence : one_of_each(std::move(sequences), start, end))
    lines.rows.insert(lines.rows.end(), sequence.begin(), sequence.end());
  return lines;
}

std::optional<SourcePlace> SourceLines::at(const Unit& unit, uint64_t address,
                                           const std::function<bool(uint64_t)>& same_frame) {
  const auto [known, is_new] = lines_.try_emplace(unit.die.cu);
  if (is_new) known->second = read(unit);
  const UnitLines& lines = known->second;
  auto row =
      std::upper_bound(lines.rows.begin(), lines.rows.end(), address,
                       [](uint64_t at, const LineEntry& entry) { return at < entry.address; });
  if (row == lines.rows.begin() || (--row)->is_end) return std::nullopt;
  for (int steps = 0; row->line == 0; ++steps) {
    if (row == lines.rows.begin() || steps == farthest_line) return std::nullopt;
    if ((--row)->is_end || !same_frame(row->address)) return std::nullopt;
  }
  if (row->file >= lines.file_count) return std::nullopt;
  const char* file = ::dwarf_filesrc(lines.files, row->file, nullptr, nullptr);
  if (file == nullptr) return std::nullopt;
  return SourcePlace{files_.number_of(file), row->line};
}

// g++ does not say where a lambda's call operator is declared, but where the lambda is.
std::optional<SourcePlace> SourceLines::declaration(Dwarf_Die* die) {
  auto found = place(die, DW_AT_decl_file, DW_AT_decl_line);
  if (found) return found;
  std::optional<Dwarf_Die> scope = units_.scope_around(*die);
  return scope ? place(&*scope, DW_AT_decl_file, DW_AT_decl_line) : std::nullopt;
}

std::optional<SourcePlace> SourceLines::call(Dwarf_Die* inlined) {
  return place(inlined, DW_AT_call_file, DW_AT_call_line);
}

std::optional<SourcePlace> SourceLines::place(Dwarf_Die* die, unsigned file_name,
                                              unsigned line_name) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (::dwarf_formudata(::dwarf_attr_integrate(die, file_name, &attribute), &number) != 0)
    return std::nullopt;
  Dwarf_Die root = root_of(attribute.cu);
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (::dwarf_getsrcfiles(&root, &files, &count) != 0 || number >= count) return std::nullopt;
  const char* file = ::dwarf_filesrc(files, number, nullptr, nullptr);
  if (file == nullptr) return std::nullopt;
  Dwarf_Word line = 0;
  ::dwarf_formudata(::dwarf_attr_integrate(die, line_name, &attribute), &line);
  return SourcePlace{files_.number_of(file), static_cast<int>(line)};
}

namespace {

// The rows of one sequence.
struct Piece {
  uint64_t start = 0;
  uint64_t end = 0;
  size_t first = 0;
  size_t last = 0;
};

class TableReader {
 public:
  TableReader(const Units& units, const SourceLines& lines) : units_(units), lines_(lines) {}

  LineTable read() {
    for (const Unit& unit : units_.all()) add(lines_.read(unit));
    LineTable table;
    const auto start = [](const Piece& piece) { return piece.start; };
    const auto end = [](const Piece& piece) { return piece.end; };
    for (const Piece& piece : one_of_each(std::move(pieces_), start, end))
      table.rows.insert(table.rows.end(), rows_.begin() + static_cast<ptrdiff_t>(piece.first),
                        rows_.begin() + static_cast<ptrdiff_t>(piece.last));
    for (size_t i = 0; i < files_.size(); ++i) table.files.push_back(files_.name(i));
    return table;
  }

 private:
  using Entries = std::span<const LineEntry>;

  void add(const UnitLines& lines) {
    const Entries all(lines.rows);
    for (size_t from = 0, at = 0; at < all.size(); ++at) {
      if (!all[at].is_end) continue;
      add(lines, all.subspan(from, at - from), all[at].address);
      from = at + 1;
    }
  }

  // In optimized code nothing may be said to begin many a line, such as all that follows inlined
  // calls: then any row of the line will do.
  void add(const UnitLines& lines, Entries sequence, uint64_t end) {
    std::set<std::pair<uint32_t, int>> beginning;
    for (const LineEntry& entry : sequence)
      if (entry.is_statement) beginning.emplace(entry.file, entry.line);
    const size_t first = rows_.size();
    for (const LineEntry& entry : sequence)
      if (entry.is_statement || !beginning.contains({entry.file, entry.line})) add(lines, entry);
    if (first < rows_.size())
      pieces_.push_back({sequence.front().address, end, first, rows_.size()});
  }

  void add(const UnitLines& lines, const LineEntry& entry) {
    if (entry.line <= 0 || entry.file >= lines.file_count) return;
    const char* file = ::dwarf_filesrc(lines.files, entry.file, nullptr, nullptr);
    if (file == nullptr) return;
    const LineRow row{entry.address, files_.number_of(file), entry.line};
    const bool again = !rows_.empty() && rows_.back().address == row.address &&
                       rows_.back().file == row.file && rows_.back().line == row.line;
    if (!again) rows_.push_back(row);
  }

  const Units& units_;
  const SourceLines& lines_;
  FileTable files_;
  std::vector<LineRow> rows_;
  std::vector<Piece> pieces_;
};

}  // namespace

LineTable read_line_table(const Units& units, const SourceLines& lines) {
  return TableReader(units, lines).read();
}

}  // namespace unflake
