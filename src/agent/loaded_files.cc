#include "agent/loaded_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "agent/memory.h"
#include "agent/raw.h"

namespace unflake::agent {
namespace {

using protocol::PlanImage;

// A library begins with its ELF header at the bias, unless somebody linked it to a place of its
// own.
const ElfW(Ehdr) * header_at(uint64_t bias) {
  unsigned char resident;
  const long page = static_cast<long>(bias);
  if (bias == 0 || bias % protocol::page != 0 ||
      failed(raw_syscall(__NR_mincore, page, protocol::page, as_word(&resident))))
    return nullptr;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bias);
  return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 ? header : nullptr;
}

size_t padded(size_t size) {
  return (size + 3) & ~size_t{3};
}

Bytes build_id_in(const uint8_t* note, const uint8_t* end) {
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    const auto& header = *reinterpret_cast<const ElfW(Nhdr)*>(note);
    const uint8_t* name = note + sizeof header;
    const uint8_t* content = name + padded(header.n_namesz);
    if (header.n_namesz > size_t(end - note) || header.n_descsz > size_t(end - note) ||
        content + header.n_descsz > end)
      return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
      return {content, header.n_descsz};
    note = content + padded(header.n_descsz);
  }
  return {};
}

bool same_file(const char* left, const char* right) {
  struct stat a {
  }, b{};
  return !failed(raw_syscall(__NR_newfstatat, AT_FDCWD, as_word(left), as_word(&a), 0)) &&
         !failed(raw_syscall(__NR_newfstatat, AT_FDCWD, as_word(right), as_word(&b), 0)) &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool matches(const PlanImage& image, const LoadedFile& file, const Bytes& build_id) {
  const size_t size = image.build_id_size;
  if (build_id.size > 0 && size > 0 && size <= sizeof image.build_id)
    return build_id.size == size && memcmp(build_id.data, image.build_id, size) == 0;
  return image.path < plan().text.count && same_file(plan_text(image.path), file.path);
}

}  // namespace

bool describe(const link_map& map, LoadedFile& file) {
  file.bias = map.l_addr;
  file.identity = map.l_ld;
  if (map.l_prev == nullptr) {
    file.path = "/proc/self/exe";
    file.segments = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
    file.segment_count = getauxval(AT_PHNUM);
    return file.segments != nullptr;
  }
  const ElfW(Ehdr)* header = header_at(map.l_addr);
  if (header == nullptr) return false;
  file.path = map.l_name;
  file.segments = reinterpret_cast<const ElfW(Phdr)*>(map.l_addr + header->e_phoff);
  file.segment_count = header->e_phnum;
  return header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) <= protocol::page;
}

bool contains(const LoadedFile& file, uint64_t address) {
  for (size_t i = 0; i < file.segment_count; ++i) {
    const ElfW(Phdr)& segment = file.segments[i];
    if (segment.p_type == PT_LOAD && address - (file.bias + segment.p_vaddr) < segment.p_memsz)
      return true;
  }
  return false;
}

Bytes build_id_of(const LoadedFile& file) {
  for (size_t i = 0; i < file.segment_count; ++i) {
    const ElfW(Phdr)& segment = file.segments[i];
    if (segment.p_type != PT_NOTE || !contains(file, file.bias + segment.p_vaddr)) continue;
    const auto* start = reinterpret_cast<const uint8_t*>(file.bias + segment.p_vaddr);
    const Bytes id = build_id_in(start, start + segment.p_memsz);
    if (id.size > 0) return id;
  }
  return {};
}

uint32_t number_in_plan(const LoadedFile& file) {
  const auto* images = plan_table<PlanImage>(plan().images);
  const Bytes build_id = build_id_of(file);
  for (uint32_t i = 0; i < plan().images.count; ++i)
    if (matches(images[i], file, build_id)) return i;
  return protocol::none;
}

}  // namespace unflake::agent
