#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>

#include "util/unique_fd.h"

namespace unflake {
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
  if (!S_ISREG(status.st_mode)) return not_understood(path, "it is no regular file");
  ::elf_version(EV_CURRENT);
  ElfHandle elf(::elf_begin(file.get(), ELF_C_READ_MMAP, nullptr));
  GElf_Ehdr header;
  if (!elf || ::elf_kind(elf.get()) != ELF_K_ELF || ::gelf_getehdr(elf.get(), &header) == nullptr)
    return not_understood(path, "it is no ELF file");
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

}  // namespace unflake
