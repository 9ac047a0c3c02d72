#include "symbols/elf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "util/files.h"
#include "util/text.h"

namespace unflake {
namespace {

uint64_t take_value(Cursor& cursor, uint8_t format) {
  switch (format) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      return cursor.take<uint64_t>();
    case DW_EH_PE_udata4:
      return cursor.take<uint32_t>();
    case DW_EH_PE_sdata4:
      return static_cast<uint64_t>(int64_t{cursor.take<int32_t>()});
    case DW_EH_PE_udata2:
      return cursor.take<uint16_t>();
    case DW_EH_PE_sdata2:
      return static_cast<uint64_t>(int64_t{cursor.take<int16_t>()});
    default:
      return cursor.take_unsigned();
  }
}

uint64_t take_pointer(Cursor& cursor, uint8_t encoding) {
  const uint64_t base = (encoding & 0x70) == DW_EH_PE_pcrel ? cursor.address() : 0;
  return base + take_value(cursor, encoding & 0x0f);
}

// How the entries of a common information entry write their addresses.
uint8_t pointer_encoding(Cursor cursor) {
  const uint8_t version = cursor.take<uint8_t>();
  const std::string_view augmentation = cursor.take_string();
  if (!augmentation.starts_with('z')) return DW_EH_PE_absptr;
  cursor.take_unsigned();  // code alignment
  cursor.take_unsigned();  // data alignment
  version == 1 ? cursor.take<uint8_t>() : cursor.take_unsigned();
  cursor.take_unsigned();  // length of what follows
  for (const char letter : augmentation.substr(1)) {
    if (letter == 'R') return cursor.take<uint8_t>();
    if (letter == 'L') cursor.take<uint8_t>();
    if (letter == 'P') take_pointer(cursor, cursor.take<uint8_t>());
  }
  return DW_EH_PE_absptr;
}

bool is_linkage_table(const ElfFile::Section& section) {
  return section.name.starts_with(".plt");
}

class FrameReader {
 public:
  FrameReader(const ElfFile& file, const ElfFile::Section& section)
      : file_(file),
        bytes_(file.bytes_at(section.start, section.end - section.start)),
        address_(section.start) {}

  std::vector<Extent> read() {
    size_t at = 0;
    while (bytes_.size() - at >= 8) {
      Cursor cursor(bytes_.subspan(at), address_ + at);
      uint64_t length = cursor.take<uint32_t>();
      if (length == 0) break;
      if (length == 0xffffffff) length = cursor.take<uint64_t>();
      if (!cursor.ok() || length < 4 || length > cursor.left()) break;
      const size_t body = at + cursor.at();
      read_entry(at, body, length);
      at = body + length;
    }
    return std::move(extents_);
  }

 private:
  void read_entry(size_t at, size_t body, size_t length) {
    Cursor cursor(bytes_.subspan(body, length), address_ + body);
    const uint32_t back = cursor.take<uint32_t>();
    if (back == 0) {
      encodings_[at] = pointer_encoding(cursor);
      return;
    }
    const auto encoding = encodings_.find(body - back);
    if (back > body || encoding == encodings_.end()) return;
    const uint64_t start = take_pointer(cursor, encoding->second);
    const uint64_t size = take_value(cursor, encoding->second & 0x0f);
    if (cursor.ok()) add({start, size});
  }

  void add(Extent extent) {
    const ElfFile::Section* section = file_.code_section_of(extent.start);
    if (section == nullptr || is_linkage_table(*section)) return;
    extent.size = std::min(extent.size, section->end - extent.start);
    if (extent.size > 0) extents_.push_back(extent);
  }

  const ElfFile& file_;
  std::span<const uint8_t> bytes_;
  uint64_t address_;
  std::unordered_map<size_t, uint8_t> encodings_;  // by the offset of the common entry
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<Extent> eh_frame_extents(const ElfFile& file) {
  const auto section = file.section(".eh_frame");
  if (!section) return {};
  std::vector<Extent> extents = FrameReader(file, *section).read();
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.start < b.start; });
  return extents;
}

namespace {

bool ends_within(uint64_t start, uint64_t size) {
  return start + size >= start;
}

Error not_understood(const std::string& path, const std::string& why) {
  return usage_error("its code cannot be looked at: " + why, path,
                     "name an executable or a shared library for x86-64");
}

template <class Visit>
void for_each_section(Elf* elf, Visit visit) {
  size_t names = 0;
  if (::elf_getshdrstrndx(elf, &names) != 0) return;
  Elf_Scn* section = nullptr;
  while ((section = ::elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = ::elf_strptr(elf, names, header.sh_name);
    visit(std::string_view(name != nullptr ? name : ""), header, section);
  }
}

}  // namespace

Result<std::unique_ptr<ElfFile>> ElfFile::open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0)
    return usage_error("cannot be read", path, "check that the file exists and is readable");
  if (!S_ISREG(status.st_mode)) return not_understood(path, "it is not a regular file");
  ::elf_version(EV_CURRENT);
  ElfHandle elf(::elf_begin(file.get(), ELF_C_READ_MMAP, nullptr));
  GElf_Ehdr header;
  if (!elf || ::elf_kind(elf.get()) != ELF_K_ELF || ::gelf_getehdr(elf.get(), &header) == nullptr)
    return not_understood(path, "it is not an ELF file");
  if (header.e_machine != EM_X86_64 || ::gelf_getclass(elf.get()) != ELFCLASS64)
    return not_understood(path, "it is not made for 64-bit x86");
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return not_understood(path, "it is neither an executable nor a shared library");
  return std::unique_ptr<ElfFile>(new ElfFile(path, std::move(file), std::move(elf)));
}

ElfFile::ElfFile(std::string path, UniqueFd file, ElfHandle elf)
    : path_(std::move(path)), descriptor_(std::move(file)), elf_(std::move(elf)) {
  size_t size = 0;
  const char* bytes = ::elf_rawfile(elf_.get(), &size);
  if (bytes != nullptr) file_ = {reinterpret_cast<const uint8_t*>(bytes), size};
  read_segments();
  read_code();
  read_build_id();
}

void ElfFile::read_segments() {
  size_t count = 0;
  if (::elf_getphdrnum(elf_.get(), &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf_.get(), static_cast<int>(i), &header) == nullptr) return;
    if (header.p_type != PT_LOAD || header.p_offset >= file_.size()) continue;
    const uint64_t size = std::min<uint64_t>(header.p_filesz, file_.size() - header.p_offset);
    if (!ends_within(header.p_vaddr, size)) continue;
    segments_.push_back({header.p_vaddr, size, header.p_offset, (header.p_flags & PF_X) != 0});
  }
}

void ElfFile::read_code() {
  for_each_section(elf_.get(), [&](std::string_view name, const GElf_Shdr& header, Elf_Scn*) {
    if ((header.sh_flags & SHF_EXECINSTR) == 0 || (header.sh_flags & SHF_ALLOC) == 0) return;
    if (header.sh_size == 0 || !ends_within(header.sh_addr, header.sh_size)) return;
    code_.push_back({name, header.sh_addr, header.sh_addr + header.sh_size});
  });
  if (code_.empty())
    for (const Segment& segment : segments_)
      if (segment.executable) code_.push_back({"", segment.start, segment.start + segment.size});
  std::sort(code_.begin(), code_.end(),
            [](const Section& a, const Section& b) { return a.start < b.start; });
}

void ElfFile::read_build_id() {
  const void* bytes = nullptr;
  const ssize_t size = ::dwelf_elf_gnu_build_id(elf_.get(), &bytes);
  if (size > 0 && size <= 64) build_id_.assign(static_cast<const char*>(bytes), size);
}

std::optional<ElfFile::DebugLink> ElfFile::debug_link() const {
  GElf_Word checksum = 0;
  const char* name = ::dwelf_elf_gnu_debuglink(elf_.get(), &checksum);
  if (name == nullptr) return std::nullopt;
  return DebugLink{name, checksum};
}

const ElfFile::Section* ElfFile::code_section_of(uint64_t address) const {
  auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                [](uint64_t at, const Section& s) { return at < s.start; });
  if (after == code_.begin()) return nullptr;
  const Section& section = *--after;
  return address < section.end ? &section : nullptr;
}

std::span<const uint8_t> ElfFile::bytes_at(uint64_t address, size_t size) const {
  for (const Segment& segment : segments_) {
    if (address < segment.start || address - segment.start >= segment.size) continue;
    const uint64_t into = address - segment.start;
    return file_.subspan(segment.offset + into, std::min<uint64_t>(size, segment.size - into));
  }
  return {};
}

bool ElfFile::has_section(std::string_view wanted) const {
  bool found = false;
  for_each_section(elf_.get(), [&](std::string_view name, const GElf_Shdr& header, Elf_Scn*) {
    found |= name == wanted && header.sh_type != SHT_NOBITS;
  });
  return found;
}

std::span<const uint8_t> ElfFile::section_bytes(std::string_view wanted) const {
  std::span<const uint8_t> bytes;
  for_each_section(elf_.get(), [&](std::string_view name, const GElf_Shdr&, Elf_Scn* section) {
    Elf_Data* data = name == wanted ? ::elf_getdata(section, nullptr) : nullptr;
    if (data != nullptr && data->d_buf != nullptr)
      bytes = {static_cast<const uint8_t*>(data->d_buf), data->d_size};
  });
  return bytes;
}

std::optional<ElfFile::Section> ElfFile::section(std::string_view wanted) const {
  std::optional<Section> found;
  for_each_section(elf_.get(), [&](std::string_view name, const GElf_Shdr& header, Elf_Scn*) {
    if (name == wanted && (header.sh_flags & SHF_ALLOC) != 0 &&
        ends_within(header.sh_addr, header.sh_size))
      found = Section{name, header.sh_addr, header.sh_addr + header.sh_size};
  });
  return found;
}

namespace {

constexpr std::string_view debug_root = "/usr/lib/debug";

std::string build_id_path(const std::string& id) {
  const std::string hex = hexadecimal(id);
  return fmt::format("{}/.build-id/{}/{}.debug", debug_root, hex.substr(0, 2), hex.substr(2));
}

std::vector<std::string> debug_link_paths(const ElfFile& file, const std::string& name) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(file.path(), failed);
  if (failed) return {};
  const std::string folder = real.parent_path().string();
  return {folder + "/" + name, folder + "/.debug/" + name,
          fmt::format("{}{}/{}", debug_root, folder, name)};
}

uint32_t checksum(std::span<const uint8_t> bytes) {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0u);
    table[i] = value;
  }
  uint32_t sum = 0xffffffff;
  for (const uint8_t byte : bytes) sum = table[(sum ^ byte) & 0xff] ^ (sum >> 8);
  return ~sum;
}

bool belongs_to(const ElfFile& debug, const ElfFile& file, uint32_t expected) {
  if (!file.build_id().empty() && !debug.build_id().empty())
    return file.build_id() == debug.build_id();
  size_t size = 0;
  const char* bytes = ::elf_rawfile(debug.elf(), &size);
  return bytes != nullptr && checksum({reinterpret_cast<const uint8_t*>(bytes), size}) == expected;
}

}  // namespace

std::unique_ptr<ElfFile> find_debug_file(const ElfFile& file) {
  if (file.build_id().size() > 1) {
    auto debug = ElfFile::open(build_id_path(file.build_id()));
    if (debug && (*debug)->build_id() == file.build_id()) return std::move(*debug);
  }
  const auto link = file.debug_link();
  if (!link || link->name.find('/') != std::string::npos) return nullptr;
  for (const std::string& path : debug_link_paths(file, link->name)) {
    auto debug = ElfFile::open(path);
    if (debug && belongs_to(**debug, file, link->checksum)) return std::move(*debug);
  }
  return nullptr;
}

void visit_symbols(const ElfFile& file, uint32_t table, const SymbolVisitor& visit) {
  Elf_Scn* section = nullptr;
  while ((section = ::elf_nextscn(file.elf(), section)) != nullptr) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) == nullptr || header.sh_type != table) continue;
    Elf_Data* data = ::elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) continue;
    GElf_Sym symbol;
    for (int i = 0; ::gelf_getsym(data, i, &symbol) != nullptr; ++i) {
      const char* name = ::elf_strptr(file.elf(), header.sh_link, symbol.st_name);
      visit(symbol, name != nullptr ? name : "");
    }
  }
}

namespace {

// A symbol with what decides which of several at one address gives the name.
struct Candidate {
  Symbol symbol;
  int rank = 0;  // lower is better
};

int rank_of(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  const int clone = std::strchr(name, '.') != nullptr ? 4 : 0;
  return clone + (binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2);
}

bool read_tables(const ElfFile& from, uint32_t type, const ElfFile& file,
                 std::vector<Candidate>& found) {
  const size_t before = found.size();
  visit_symbols(from, type, [&](const GElf_Sym& symbol, const char* name) {
    const int kind = GELF_ST_TYPE(symbol.st_info);
    if ((kind != STT_FUNC && kind != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) return;
    const ElfFile::Section* code = file.code_section_of(symbol.st_value);
    if (code == nullptr || *name == 0) return;
    const uint64_t size = std::min<uint64_t>(symbol.st_size, code->end - symbol.st_value);
    found.push_back({{symbol.st_value, size, name}, rank_of(symbol, name)});
  });
  return found.size() > before;
}

std::vector<Candidate> read_candidates(const ElfFile& file, const ElfFile* debug) {
  std::vector<Candidate> found;
  const bool complete = read_tables(file, SHT_SYMTAB, file, found) ||
                        (debug != nullptr && read_tables(*debug, SHT_SYMTAB, file, found));
  if (!complete) read_tables(file, SHT_DYNSYM, file, found);
  for (const Extent& extent : eh_frame_extents(file))
    found.push_back({{extent.start, extent.size, ""}, 8});
  return found;
}

bool comes_first(const Candidate& a, const Candidate& b) {
  if (a.symbol.start != b.symbol.start) return a.symbol.start < b.symbol.start;
  return a.rank < b.rank;
}

// One symbol for each start, with the best name and a size where any of them has one.
std::vector<Candidate> unique_starts(std::vector<Candidate> found) {
  std::stable_sort(found.begin(), found.end(), comes_first);
  std::vector<Candidate> unique;
  for (const Candidate& candidate : found) {
    if (unique.empty() || unique.back().symbol.start != candidate.symbol.start)
      unique.push_back(candidate);
    else if (unique.back().symbol.size == 0)
      unique.back().symbol.size = candidate.symbol.size;
  }
  return unique;
}

// Where each has to end at the latest: a named one at the next name, the others at whatever begins
// next.
std::vector<uint64_t> next_starts(const std::vector<Candidate>& unique) {
  std::vector<uint64_t> starts(unique.size());
  uint64_t next = UINT64_MAX;
  uint64_t next_named = UINT64_MAX;
  for (size_t i = unique.size(); i-- > 0;) {
    const Symbol& symbol = unique[i].symbol;
    const bool named = *symbol.name != 0;
    starts[i] = named && symbol.size > 0 ? next_named : next;
    next = symbol.start;
    if (named) next_named = symbol.start;
  }
  return starts;
}

}  // namespace

SymbolTable::SymbolTable(const ElfFile& file, const ElfFile* debug) {
  const std::vector<Candidate> unique = unique_starts(read_candidates(file, debug));
  const std::vector<uint64_t> limits = next_starts(unique);
  uint64_t end = 0;
  for (size_t i = 0; i < unique.size(); ++i) {
    Symbol symbol = unique[i].symbol;
    // Unwinding is described in pieces that need not begin where functions do.
    if (*symbol.name == 0 && symbol.start < end) continue;
    const uint64_t section_end = file.code_section_of(symbol.start)->end;
    const uint64_t room = std::min(limits[i], section_end) - symbol.start;
    symbol.size = symbol.size == 0 ? room : std::min(symbol.size, room);
    end = symbol.start + symbol.size;
    symbols_.push_back(symbol);
  }
}

const Symbol* SymbolTable::find(uint64_t address) const {
  auto after = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                                [](uint64_t at, const Symbol& s) { return at < s.start; });
  if (after == symbols_.begin()) return nullptr;
  const Symbol& symbol = *--after;
  return address - symbol.start < symbol.size ? &symbol : nullptr;
}

}  // namespace unflake
