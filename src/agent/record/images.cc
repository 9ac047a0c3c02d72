#include "agent/record/images.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "agent/hash.h"
#include "agent/raw.h"
#include "agent/record/memory.h"

namespace unflake::agent {
namespace {

using protocol::PlanImage;

// A library begins with its ELF header at the bias, unless somebody linked it to an address of its
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
  return image.path < memory().text.count && same_file(plan_text(image.path), file.path);
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
  const auto* images = memory().plan_images.first;
  const Bytes build_id = build_id_of(file);
  for (uint32_t i = 0; i < memory().plan_images.count; ++i)
    if (matches(images[i], file, build_id)) return i;
  return protocol::none;
}

namespace {

using namespace protocol;

// Gives up after a while: the holder may be this thread, interrupted by a signal. In a forked
// child a holder of the parent process is nobody.
class SpinLock {
 public:
  class Hold {
   public:
    explicit Hold(SpinLock& lock) : lock_(lock), held_(lock.take()) {}
    ~Hold() {
      if (held_) lock_.holder_.store(0);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_; }

   private:
    SpinLock& lock_;
    const bool held_;
  };

 private:
  bool take() {
    const auto process = static_cast<uint32_t>(raw_syscall(__NR_getpid));
    for (int tries = 0; tries < 100'000; ++tries) {
      const uint32_t holder = holder_.load();
      if (holder != process && holder_.change(holder, process)) return true;
      __builtin_ia32_pause();
    }
    return false;
  }

  Shared<uint32_t> holder_;  // its process; 0: none
};

// Readers need no lock: an entry is complete before it has a start, and nobody looks for that of an
// image that was unloaded, until another image gets it.
LoadedImage images[most_images];
Shared<uint32_t> image_count;
Shared<uint32_t> closed_count;
SpinLock adding;

constexpr const char* wrappers[] = {
    "libc.so",    "libpthread", "libstdc++", "libc++",          "libgcc_s",        "libasan",
    "libtsan",    "libubsan",   "liblsan",   "libclang_rt",     "libboost_thread", "libglib-2.0",
    "libQt5Core", "libQt6Core", "ld-linux",  "libunflake-agent"};

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// The executable's own link map has no name, and a library's has the one that dlopen was given.
void path_of(const link_map& map, char* path, size_t size) {
  if (map.l_name != nullptr && map.l_name[0] != '\0') {
    size_t length = 0;
    if (map.l_name[0] != '/' && strchr(map.l_name, '/') != nullptr &&
        !failed(raw_syscall(__NR_getcwd, as_word(path), static_cast<long>(size - 2)))) {
      length = strlen(path);
      path[length++] = '/';
    }
    strncpy(path + length, map.l_name, size - length - 1);
    return;
  }
  const long length = raw_syscall(__NR_readlink, as_word("/proc/self/exe"), as_word(path),
                                  static_cast<long>(size - 1));
  path[failed(length) ? 0 : length] = '\0';
}

bool is_below_system_prefix(const char* path) {
  const auto* prefixes = memory().system_prefixes.first;
  for (uint32_t i = 0; i < memory().system_prefixes.count; ++i) {
    if (starts_with(path, plan_text(prefixes[i]))) return true;
  }
  return path[0] != '/';  // the vDSO
}

CodeOwner owner_by_path(const char* path) {
  const char* name = base_name(path);
  for (const char* wrapper : wrappers)
    if (starts_with(name, wrapper)) return CodeOwner::wrapper;
  return is_below_system_prefix(path) ? CodeOwner::system : CodeOwner::project;
}

bool is_same(const protocol::Image& image, const char* path, const Bytes& id) {
  return image.state.load() == 2 && image.build_id_size == id.size &&
         memcmp(image.build_id, id.data, id.size) == 0 && strcmp(image.path, path) == 0;
}

uint32_t find_in_report(const char* path, const Bytes& id) {
  const Tables& out = memory();
  const uint32_t used = out.images.used->load();
  for (uint32_t i = 0; i < used && i < out.images.count; ++i)
    if (is_same(out.images[i], path, id)) return i;
  return none;
}

uint32_t number_in_report(const char* path, const Bytes& id, bool is_project) {
  const uint32_t known = find_in_report(path, id);
  if (known != none) return known;
  const Tables& out = memory();
  const uint32_t number = out.images.used->add(1);
  if (number >= out.images.count) {
    out.dropped[dropped_images].add(1);
    return unknown_image;
  }
  protocol::Image& image = out.images[number];
  image.state.store(1);
  memcpy(image.build_id, id.data, id.size);
  image.build_id_size = static_cast<uint32_t>(id.size);
  image.is_project = is_project;
  memcpy(image.path, path, strnlen(path, sizeof image.path - 1));
  image.state.store(2);
  return number;
}

void describe(LoadedImage& image, const link_map& map, const dl_find_object& found) {
  char path[sizeof(protocol::Image::path)] = {};
  path_of(map, path, sizeof path);
  image.start = reinterpret_cast<uint64_t>(found.dlfo_map_start);
  image.end = reinterpret_cast<uint64_t>(found.dlfo_map_end);
  image.bias = map.l_addr;
  image.link_map = &map;
  LoadedFile file;
  const bool is_readable = describe(map, file);
  Bytes id = is_readable ? build_id_of(file) : Bytes{};
  if (id.size > sizeof(PlanImage::build_id)) id = {};
  image.plan_number = is_readable ? number_in_plan(file) : none;
  image.owner = owner_by_path(path);
  if (image.plan_number != none && image.owner != CodeOwner::wrapper)
    image.owner =
        memory().plan_images[image.plan_number].is_project ? CodeOwner::project : CodeOwner::system;
  const char* name = base_name(path);
  image.locks_for_itself = starts_with(name, "libstdc++");
  image.is_cxx_runtime = starts_with(name, "libstdc++") || starts_with(name, "libc++");
  image.name_hash = hash_text(name);
  image.number = number_in_report(path, id, image.owner == CodeOwner::project);
}

const LoadedImage* find_loaded(uint64_t start, uint64_t bias) {
  const uint32_t count = image_count.load();
  for (uint32_t i = count; i-- > 0;)
    if (images[i].start == start && images[i].bias == bias) return &images[i];
  return nullptr;
}

LoadedImage* free_entry() {
  const uint32_t count = image_count.load();
  for (uint32_t i = 0; i < count; ++i)
    if (images[i].start == 0) return &images[i];
  if (count == most_images) return nullptr;
  image_count.store(count + 1);
  return &images[count];
}

const LoadedImage* add(const dl_find_object& found) {
  SpinLock::Hold hold(adding);
  if (!hold) return nullptr;
  const uint64_t start = reinterpret_cast<uint64_t>(found.dlfo_map_start);
  if (const LoadedImage* other = find_loaded(start, found.dlfo_link_map->l_addr)) return other;
  LoadedImage* room = free_entry();
  if (room == nullptr) return nullptr;
  LoadedImage image;
  describe(image, *found.dlfo_link_map, found);
  image.start = 0;
  *room = image;
  __atomic_store_n(&room->start, start, __ATOMIC_RELEASE);
  return room;
}

bool is_loaded(const LoadedImage& image) {
  dl_find_object found{};
  return _dl_find_object(reinterpret_cast<void*>(image.start), &found) == 0 &&
         found.dlfo_link_map == image.link_map;
}

CodeOwner owner_inside(const PlanImage& image, uint64_t offset) {
  const SkipRange* first = memory().skips.first + image.first_skip;
  uint32_t low = 0, high = image.skip_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (first[middle].start <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return CodeOwner::project;
  const SkipRange& range = first[low - 1];
  if (offset - range.start >= (range.size & ~foreign_code)) return CodeOwner::project;
  return (range.size & foreign_code) != 0 ? CodeOwner::system : CodeOwner::wrapper;
}

}  // namespace

const LoadedImage* image_at(uint64_t address) {
  dl_find_object found{};
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return nullptr;
  const uint64_t start = reinterpret_cast<uint64_t>(found.dlfo_map_start);
  if (const LoadedImage* image = find_loaded(start, found.dlfo_link_map->l_addr)) return image;
  return add(found);
}

bool forget_closed_image(uint64_t& start, uint64_t& end) {
  SpinLock::Hold hold(adding);
  const uint32_t count = hold ? image_count.load() : 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (images[i].start == 0 || is_loaded(images[i])) continue;
    start = images[i].start;
    end = images[i].end;
    images[i].start = 0;
    closed_count.add(1);
    return true;
  }
  return false;
}

uint32_t closed_images() {
  return closed_count.load();
}

CodeOwner owner_of(uint64_t address, const LoadedImage* image) {
  if (image == nullptr) return CodeOwner::unknown;
  if (image->owner != CodeOwner::project || image->plan_number == none) return image->owner;
  const PlanImage& planned = memory().plan_images[image->plan_number];
  // A return address may be the first byte of the next function.
  return owner_inside(planned, address - image->bias - 1);
}

bool is_cxx_runtime(const void* address) {
  const LoadedImage* image = image_at(reinterpret_cast<uint64_t>(address));
  return image != nullptr && image->is_cxx_runtime;
}

Address address_in(uint64_t address, const LoadedImage* image) {
  return image != nullptr ? make_address(image->number, address - image->bias)
                          : make_address(unknown_image, address);
}

void forget_adding() {
  adding = {};
}

const LoadedImage* executable_image() {
  static const LoadedImage* executable = nullptr;
  if (executable == nullptr) {
    const auto* self = static_cast<link_map*>(dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD));
    if (self != nullptr) executable = image_at(reinterpret_cast<uint64_t>(self->l_ld));
  }
  return executable;
}

}  // namespace unflake::agent
