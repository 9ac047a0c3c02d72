#include "symbols/bare_units.h"

#include <gelf.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "util/base_name.h"

namespace unflake {
namespace {

// A source file as the symbol table names it.
struct FileSymbol {
  std::string name;
  std::vector<uint64_t> functions;  // its local ones
  bool is_bare = false;
};

// Assembly has no debug information by custom, and objects of link-time optimisation no source.
bool is_compiled_source(std::string_view name) {
  constexpr std::array others = {".o", ".s", ".S", ".asm"};
  const bool is_start_file = name == "crtstuff.c" || name.starts_with('<');
  return name.find('.') != std::string_view::npos && !is_start_file &&
         std::ranges::none_of(others, [&](const char* end) { return name.ends_with(end); });
}

void read_files(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                std::vector<FileSymbol>& files) {
  Elf_Data* data = ::elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const size_t count = data->d_size / sizeof(Elf64_Sym);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (::gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    if (GELF_ST_BIND(symbol.st_info) != STB_LOCAL) continue;
    const int type = GELF_ST_TYPE(symbol.st_info);
    const char* name = ::elf_strptr(elf, header.sh_link, symbol.st_name);
    if (type == STT_FILE) files.push_back({name != nullptr ? name : "", {}, false});
    if (type == STT_FUNC && symbol.st_shndx != SHN_UNDEF && !files.empty())
      files.back().functions.push_back(symbol.st_value);
  }
}

std::vector<FileSymbol> read_files(const ElfFile& file) {
  std::vector<FileSymbol> files;
  Elf_Scn* section = nullptr;
  while ((section = ::elf_nextscn(file.elf(), section)) != nullptr) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_SYMTAB)
      read_files(file.elf(), section, header, files);
  }
  return files;
}

class BareUnits {
 public:
  BareUnits(std::vector<FileSymbol> files, const KnownCode& known)
      : files_(std::move(files)), functions_(known.functions) {
    for (const Function& function : functions_) units_.push_back(known.unit_at(function.start));
  }

  std::vector<BareUnit> operator()() {
    find_bare_files();
    find_anchors();
    std::map<size_t, BareUnit> units;
    for (uint32_t i = 0; i < functions_.size(); ++i) {
      if (!units_[i].empty() || functions_[i].name.empty()) continue;
      const std::vector<size_t> owners = owners_of(functions_[i].start);
      for (const size_t owner : owners) {
        BareUnit& unit =
            units.try_emplace(owner, BareUnit{files_[owner].name, {}, {}}).first->second;
        (owners.size() == 1 ? unit.functions : unit.perhaps).push_back(i);
      }
    }
    std::vector<BareUnit> found;
    for (auto& [file, unit] : units) found.push_back(std::move(unit));
    return found;
  }

 private:
  std::optional<size_t> function_at(uint64_t start) const {
    const auto found = std::ranges::lower_bound(functions_, start, {}, &Function::start);
    if (found == functions_.end() || found->start != start) return std::nullopt;
    return static_cast<size_t>(found - functions_.begin());
  }

  // Its own code tells; a file without local functions is known by its name alone.
  void find_bare_files() {
    std::set<std::string> named;
    for (const std::string& unit : units_)
      if (!unit.empty()) named.insert(base_name(unit));
    for (FileSymbol& file : files_) {
      const bool has_unit = std::ranges::any_of(file.functions, [&](uint64_t start) {
        const auto function = function_at(start);
        return function && !units_[*function].empty();
      });
      const bool is_named = file.functions.empty() && named.contains(base_name(file.name));
      file.is_bare = is_compiled_source(file.name) && !has_unit && !is_named;
    }
  }

  // Where code of a certain file is. What has debug information tells its file, too, when only one
  // of that name was linked.
  void find_anchors() {
    for (size_t i = 0; i < files_.size(); ++i)
      for (const uint64_t start : files_[i].functions) anchors_[start] = i;
    std::map<std::string, std::vector<size_t>> by_name;
    for (size_t i = 0; i < files_.size(); ++i) by_name[base_name(files_[i].name)].push_back(i);
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (units_[i].empty()) continue;
      const auto named = by_name.find(base_name(units_[i]));
      if (named != by_name.end() && named->second.size() == 1)
        anchors_.try_emplace(functions_[i].start, named->second.front());
    }
  }

  // A file without local functions leaves no trace between its neighbours, and one that has them
  // only among its start-up code is among them where that is.
  std::vector<size_t> owners_of(uint64_t start) const {
    const auto next = anchors_.lower_bound(start);
    if (next != anchors_.end() && next->first == start) return bare_of({next->second});
    const bool has_next = next != anchors_.end(), has_last = next != anchors_.begin();
    std::set<size_t> around;
    if (has_next) around.insert(next->second);
    if (has_last) around.insert(std::prev(next)->second);
    if (has_next && has_last && around.size() == 1) return bare_of(around);
    const bool any_bare = !bare_of(around).empty();
    for (size_t i = 0; i < files_.size(); ++i)
      if (!any_bare || files_[i].functions.empty()) around.insert(i);
    return bare_of(around);
  }

  std::vector<size_t> bare_of(const std::set<size_t>& candidates) const {
    std::vector<size_t> owners;
    for (const size_t i : candidates)
      if (files_[i].is_bare) owners.push_back(i);
    return owners;
  }

  std::vector<FileSymbol> files_;
  std::span<const Function> functions_;
  std::vector<std::string> units_;      // of each function; empty: none
  std::map<uint64_t, size_t> anchors_;  // file by address
};

}  // namespace

std::vector<BareUnit> list_bare_units(const ElfFile& file, const ElfFile* debug,
                                      const KnownCode& known) {
  std::vector<FileSymbol> files = read_files(file);
  if (files.empty() && debug != nullptr) files = read_files(*debug);
  if (files.empty()) return {};
  return BareUnits(std::move(files), known)();
}

}  // namespace unflake
