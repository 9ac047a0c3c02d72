#include "symbols/image.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "symbols/dwarf.h"
#include "symbols/elf_file.h"

namespace unflake {
namespace {

using Slots = std::map<uint64_t, std::string>;  // where an address will be written, and of what

void add_slots(const ElfFile& file, Elf_Scn* section, const GElf_Shdr& header, Slots& slots) {
  Elf_Scn* symbols = ::elf_getscn(file.elf(), header.sh_link);
  GElf_Shdr symbols_header;
  Elf_Data* relocations = ::elf_getdata(section, nullptr);
  Elf_Data* table = symbols ? ::elf_getdata(symbols, nullptr) : nullptr;
  if (!relocations || !table || header.sh_entsize == 0 ||
      ::gelf_getshdr(symbols, &symbols_header) == nullptr)
    return;
  const auto count =
      static_cast<int>(std::min<uint64_t>(header.sh_size / header.sh_entsize, INT32_MAX));
  for (int i = 0; i < count; ++i) {
    GElf_Rela relocation;
    GElf_Sym symbol;
    if (::gelf_getrela(relocations, i, &relocation) == nullptr) return;
    const uint64_t type = GELF_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const auto number = static_cast<int>(GELF_R_SYM(relocation.r_info));
    if (::gelf_getsym(table, number, &symbol) == nullptr) continue;
    const char* name = ::elf_strptr(file.elf(), symbols_header.sh_link, symbol.st_name);
    if (name != nullptr && *name != '\0') slots[relocation.r_offset] = name;
  }
}

Slots slots_of(const ElfFile& file) {
  Slots slots;
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(file.elf(), section)) != nullptr;) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_RELA)
      add_slots(file, section, header, slots);
  }
  return slots;
}

// `jmp *slot(%rip)`, after the mark of an indirect branch's target where there is one. None: these
// bytes are something else.
std::optional<uint64_t> slot_of_entry(std::span<const uint8_t> code, uint64_t address) {
  constexpr uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  size_t at =
      std::ranges::equal(code.first(std::min(code.size(), sizeof endbr)), endbr) ? sizeof endbr : 0;
  if (at < code.size() && code[at] == 0xf2) ++at;  // bnd
  if (at + 6 > code.size() || code[at] != 0xff || code[at + 1] != 0x25) return std::nullopt;
  int32_t displacement = 0;
  std::memcpy(&displacement, code.data() + at + 2, sizeof displacement);
  return address + at + 6 + static_cast<uint64_t>(int64_t{displacement});
}

// The functions of other libraries that this file calls through its procedure linkage tables, by
// the entries there; ordered by them. Calls that were compiled with -fno-plt go through no table.
// Entries have 8 or 16 bytes, by the table and the linker.
std::vector<Import> imports_of(const ElfFile& file) {
  constexpr size_t shortest_entry = 8, longest_jump = 11;
  const Slots slots = slots_of(file);
  std::vector<Import> imports;
  for (const char* table : {".plt", ".plt.sec", ".plt.got"}) {
    const auto section = file.section(table);
    if (!section) continue;
    // What the file has of it: a header may promise anything.
    const auto code = file.bytes_at(section->start, section->end - section->start);
    for (size_t at = 0; at < code.size(); at += shortest_entry) {
      const uint64_t entry = section->start + at;
      const auto jump = code.subspan(at, std::min(longest_jump, code.size() - at));
      const auto slot = slot_of_entry(jump, entry);
      const auto found = slot ? slots.find(*slot) : slots.end();
      if (found != slots.end()) imports.push_back({found->second, entry});
    }
  }
  std::ranges::sort(imports, {}, &Import::entry);
  return imports;
}

// What needs DWARF, and is not looked at before it is asked for.
struct DebugInformation {
  DebugInformation(const ElfFile& debug, const ElfFile& file)
      : units(debug, file), lines(units, debug, file), names(units) {}

  Units units;
  SourceLines lines;
  DieNames names;
};

// The function at an address and what was inlined there, innermost first.
std::vector<Dwarf_Die> scopes_at(const UnitCode& code, const CompiledFunction* function,
                                 uint64_t address) {
  std::vector<Dwarf_Die> scopes;
  if (function == nullptr) return scopes;
  for (const InlinedCall& call : calls_at(code, *function, address)) scopes.push_back(call.die);
  std::reverse(scopes.begin(), scopes.end());
  scopes.push_back(function->die);
  return scopes;
}

bool same_dies(const std::vector<Dwarf_Die>& a, const std::vector<Dwarf_Die>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Dwarf_Die& x, const Dwarf_Die& y) { return x.addr == y.addr; });
}

class ElfImage : public Image {
 public:
  explicit ElfImage(std::unique_ptr<ElfFile> file) : file_(std::move(file)) {
    if (!file_->has_section(".debug_info") && !file_->has_section(".zdebug_info"))
      debug_file_ = find_debug_file(*file_);
  }

  const std::string& path() const override { return file_->path(); }
  const std::string& build_id() const override { return file_->build_id(); }
  bool has_debug_information() const override;
  std::string why_no_debug_information() const override;
  std::vector<Frame> frames_at(uint64_t address) const override;
  std::span<const Function> functions() const override;
  std::span<const LineRow> lines() const override { return line_table().rows; }
  std::span<const std::string> files() const override { return line_table().files; }
  std::span<const uint8_t> code_at(uint64_t address, size_t size) const override {
    return file_->bytes_at(address, size);
  }
  std::vector<Extent> code_from(const FileFilter& filter) const override {
    return collect_code_from(filter, debug().units, debug().lines);
  }
  std::vector<Import> imports() const override { return imports_of(*file_); }
  std::span<const BareUnit> bare_units() const override;
  std::optional<Variable> variable_at(uint64_t address) const override;

 private:
  DebugInformation& debug() const;
  const SymbolTable& symbols() const;
  const LineTable& line_table() const;
  const std::string& missing_split_file() const;
  std::string unit_at(uint64_t address) const;
  void add_debug_frames(uint64_t address, std::vector<Frame>& frames) const;
  void complete(uint64_t address, std::vector<Frame>& frames) const;

  std::unique_ptr<ElfFile> file_;
  std::unique_ptr<ElfFile> debug_file_;
  mutable std::unique_ptr<DebugInformation> debug_;
  mutable std::optional<SymbolTable> symbols_;
  mutable std::optional<LineTable> line_table_;
  mutable std::optional<std::string> missing_split_file_;
  mutable std::unique_ptr<Variables> variables_;
  mutable std::optional<std::vector<Function>> functions_;
  mutable std::optional<std::vector<BareUnit>> bare_units_;
};

DebugInformation& ElfImage::debug() const {
  if (debug_ == nullptr)
    debug_ = std::make_unique<DebugInformation>(debug_file_ ? *debug_file_ : *file_, *file_);
  return *debug_;
}

const SymbolTable& ElfImage::symbols() const {
  if (!symbols_) symbols_.emplace(*file_, debug_file_.get());
  return *symbols_;
}

const LineTable& ElfImage::line_table() const {
  if (!line_table_) line_table_ = read_line_table(debug().units, debug().lines);
  return *line_table_;
}

std::span<const Function> ElfImage::functions() const {
  if (!functions_) functions_ = list_functions(symbols(), debug().units, debug().lines);
  return *functions_;
}

std::string ElfImage::unit_at(uint64_t address) const {
  const Unit* unit = debug().units.find(address);
  if (unit == nullptr) return "";
  Dwarf_Die root = debug().units.root_of(*unit);
  const char* name = ::dwarf_diename(&root);
  return name != nullptr && *name != 0 ? name : "?";
}

std::span<const BareUnit> ElfImage::bare_units() const {
  if (bare_units_) return *bare_units_;
  bare_units_.emplace();
  if (has_debug_information())
    bare_units_ =
        list_bare_units(*file_, debug_file_.get(),
                        {functions(), [this](uint64_t address) { return unit_at(address); }});
  return *bare_units_;
}

std::optional<Variable> ElfImage::variable_at(uint64_t address) const {
  if (variables_ == nullptr)
    variables_ = std::make_unique<Variables>(debug().units, *file_, debug_file_.get());
  return variables_->at(address, debug().names);
}

const std::string& ElfImage::missing_split_file() const {
  if (!missing_split_file_) missing_split_file_ = debug().units.missing_split_file();
  return *missing_split_file_;
}

bool ElfImage::has_debug_information() const {
  return !debug().units.all().empty() && missing_split_file().empty();
}

std::string ElfImage::why_no_debug_information() const {
  if (!missing_split_file().empty()) {
    std::error_code ignored;
    const bool is_packed = std::filesystem::exists(path() + ".dwp", ignored);
    return "the file " + missing_split_file() +
           " is missing, in which the compiler put the debug information (-gsplit-dwarf)" +
           (is_packed ? "; a .dwp file cannot be read: keep the .dwo files that it was made of"
                      : "; build it again, or without -gsplit-dwarf");
  }
  if (!debug().units.all().empty()) return "";
  if (!file_->has_section(".symtab"))
    return "it was stripped; build it with -g and do not strip it, or put its separate debug file "
           "(.debug, -dbgsym) where gdb would find it";
  return "it was built without -g; build it with -g";
}

// Innermost first: each inlined call gives the position in the frame around it.
void ElfImage::add_debug_frames(uint64_t address, std::vector<Frame>& frames) const {
  const Unit* unit = debug().units.find(address);
  if (unit == nullptr) return;
  const UnitCode& code = debug().units.code_of(debug().units.root_of(*unit).cu);
  const CompiledFunction* function = code.find(address);
  std::vector<Dwarf_Die> scopes = scopes_at(code, function, address);
  std::optional<SourcePlace> place = debug().lines.at(*unit, address, [&](uint64_t other) {
    return same_dies(scopes, scopes_at(code, code.find(other), other));
  });
  if (scopes.empty()) scopes.emplace_back();  // only the line table knows the address
  if (!place && function != nullptr) place = debug().lines.declaration(&scopes.front());
  for (Dwarf_Die& die : scopes) {
    Frame frame;
    frame.inlined = &die != &scopes.back();
    if (function != nullptr) {
      frame.function = debug().names.name_of(die);
      frame.function_start = function->low;
    }
    if (place) {
      frame.file = debug().lines.file_name(place->file);
      frame.line = place->line;
    }
    frames.push_back(std::move(frame));
    if (frames.back().inlined) place = debug().lines.call(&die);
  }
}

// What the symbol table knows better, or alone.
void ElfImage::complete(uint64_t address, std::vector<Frame>& frames) const {
  if (frames.empty()) frames.emplace_back();
  const Symbol* symbol = symbols().find(address);
  if (symbol == nullptr) return;
  for (Frame& frame : frames) frame.function_start = symbol->start;
  if (frames.back().function.empty())
    frames.back().function = qualified_name(demangle(symbol->name));
}

std::vector<Frame> ElfImage::frames_at(uint64_t address) const {
  std::vector<Frame> frames;
  if (!file_->is_code(address)) return frames;
  add_debug_frames(address, frames);
  complete(address, frames);
  return frames;
}

}  // namespace

Result<std::shared_ptr<const Image>> Image::open(const std::string& path) {
  auto file = ElfFile::open(path);
  if (!file) return file.error();
  return std::shared_ptr<const Image>(std::make_shared<ElfImage>(std::move(*file)));
}

}  // namespace unflake
