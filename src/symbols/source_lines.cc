#include "symbols/source_lines.h"

#include <dwarf.h>

#include <algorithm>
#include <set>

namespace unflake {
namespace {

constexpr int farthest_line = 64;  // rows to look back for one

struct Row {
  uint64_t address = 0;
  int line = 0;
  bool is_end = false;
  Dwarf_Line* raw = nullptr;
};

Row row_at(Dwarf_Lines* lines, size_t index) {
  Row row;
  Dwarf_Addr address = 0;
  row.raw = ::dwarf_onesrcline(lines, index);
  ::dwarf_lineaddr(row.raw, &address);
  ::dwarf_lineno(row.raw, &row.line);
  ::dwarf_lineendsequence(row.raw, &row.is_end);
  row.address = address;
  return row;
}

// The index of the row that an address belongs to; `count` when it is before the first.
size_t index_of(Dwarf_Lines* lines, size_t count, uint64_t address) {
  size_t low = 0;
  size_t high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (row_at(lines, middle).address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? count : low - 1;
}

Dwarf_Die root_of(Dwarf_CU* unit) {
  Dwarf_Die root{};
  ::dwarf_cu_info(unit, nullptr, nullptr, &root, nullptr, nullptr, nullptr, nullptr);
  return root;
}

}  // namespace

std::optional<SourcePlace> SourceLines::at(const Unit& unit, uint64_t address,
                                           const std::function<bool(uint64_t)>& same_frame) {
  Dwarf_Die die = unit.die;
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  if (::dwarf_getsrclines(&die, &lines, &count) != 0) return std::nullopt;
  size_t index = index_of(lines, count, address);
  if (index == count || row_at(lines, index).is_end) return std::nullopt;
  for (int steps = 0; row_at(lines, index).line == 0; ++steps) {
    if (index == 0 || steps == farthest_line) return std::nullopt;
    const Row before = row_at(lines, --index);
    if (before.is_end || !same_frame(before.address)) return std::nullopt;
  }
  const Row row = row_at(lines, index);
  const char* file = ::dwarf_linesrc(row.raw, nullptr, nullptr);
  if (file == nullptr) return std::nullopt;
  return SourcePlace{files_.number_of(file), row.line};
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

// A run of rows that the compiler wrote for one section.
struct Sequence {
  uint64_t start = 0;
  uint64_t end = 0;
  size_t first = 0;
  size_t last = 0;
};

class TableReader {
 public:
  TableReader(const Units& units, const ElfFile& file) : units_(units), file_(file) {}

  LineTable read() {
    for (const Unit& unit : units_.all()) read_unit(unit);
    LineTable table;
    keep_one_of_each(table.rows);
    for (size_t i = 0; i < files_.size(); ++i) table.files.push_back(files_.name(i));
    return table;
  }

 private:
  void read_unit(const Unit& unit) {
    Dwarf_Die die = unit.die;
    Dwarf_Lines* lines = nullptr;
    size_t count = 0;
    if (::dwarf_getsrclines(&die, &lines, &count) != 0 || !seen_.insert(lines).second) return;
    size_t first = rows_.size();
    for (size_t i = 0; i < count; ++i) {
      const Row row = row_at(lines, i);
      if (row.is_end)
        end_sequence(first, row.address);
      else
        add(row);
      if (row.is_end) first = rows_.size();
    }
    rows_.resize(first);
  }

  void add(const Row& row) {
    bool is_statement = false;
    ::dwarf_linebeginstatement(row.raw, &is_statement);
    if (!is_statement || row.line <= 0 || !file_.is_code(row.address)) return;
    const char* file = ::dwarf_linesrc(row.raw, nullptr, nullptr);
    if (file == nullptr) return;
    const LineRow added{row.address, files_.number_of(file), row.line};
    const bool again = !rows_.empty() && rows_.back().address == added.address &&
                       rows_.back().file == added.file && rows_.back().line == added.line;
    if (!again) rows_.push_back(added);
  }

  void end_sequence(size_t first, uint64_t end) {
    if (first < rows_.size())
      sequences_.push_back({rows_[first].address, end, first, rows_.size()});
  }

  // The linker keeps one copy of an inline function and lets the lines of the dropped ones point to
  // it, where they need not even be on instruction boundaries.
  void keep_one_of_each(std::vector<LineRow>& kept) {
    std::stable_sort(sequences_.begin(), sequences_.end(),
                     [](const Sequence& a, const Sequence& b) { return a.start < b.start; });
    uint64_t end = 0;
    for (const Sequence& sequence : sequences_) {
      if (sequence.start < end) continue;
      end = std::max(sequence.end, sequence.start + 1);
      kept.insert(kept.end(), rows_.begin() + sequence.first, rows_.begin() + sequence.last);
    }
    std::stable_sort(kept.begin(), kept.end(),
                     [](const LineRow& a, const LineRow& b) { return a.address < b.address; });
  }

  const Units& units_;
  const ElfFile& file_;
  FileTable files_;
  std::set<Dwarf_Lines*> seen_;
  std::vector<LineRow> rows_;
  std::vector<Sequence> sequences_;
};

}  // namespace

LineTable read_line_table(const Units& units, const ElfFile& file) {
  return TableReader(units, file).read();
}

}  // namespace unflake
