#include "agent/probes/probed_image.h"

#include <sys/mman.h>

#include "agent/process.h"
#include "agent/raw.h"
#include "agent/record/memory.h"

namespace unflake::agent {
namespace {

using protocol::Probe;

constexpr uint8_t breakpoint = 0xcc;
constexpr uint64_t page = protocol::page;
constexpr long writable_code = PROT_READ | PROT_WRITE | PROT_EXEC;

const Probe* probes() {
  return memory().probes.first;
}

// The first probe at or after an address of the plan.
uint32_t lower_bound(uint32_t first, uint32_t last, protocol::Address address) {
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    if (probes()[middle].address < address)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

uint64_t address_of(const ProbedImage& image, uint32_t probe) {
  return image.bias + protocol::offset_of(probes()[probe].address);
}

uint32_t count_slots(const ProbedImage& image) {
  uint32_t count = 0;
  for (uint32_t i = image.first; i < image.first + image.count; ++i)
    if (needs_slot(probes()[i])) ++count;
  return count;
}

uint64_t whole_words(uint64_t size) {
  constexpr uint64_t cache_line = 64;
  return (size + cache_line - 1) & ~(cache_line - 1);
}

uint64_t whole_pages(uint64_t size) {
  return (size + page - 1) & ~(page - 1);
}

uint64_t slots_size(const ProbedImage& image) {
  return image.slot_count * sizeof(Slot);
}

uint64_t code_size(const ProbedImage& image) {
  return whole_pages(whole_words(slots_size(image)) + image.jump_count * sizeof(JumpSlot));
}

// A jump must not reach into the next probe.
bool gets_jump(const ProbedImage& image, uint32_t number) {
  if (!may_jump(probes()[number])) return false;
  return number + 1 == image.first + image.count ||
         address_of(image, number + 1) - address_of(image, number) >= sizeof(JumpSlot::original);
}

uint32_t count_jumps(const ProbedImage& image) {
  uint32_t count = 0;
  for (uint32_t i = image.first; i < image.first + image.count; ++i)
    if (gets_jump(image, i)) ++count;
  return count;
}

// Where that fails, each process has its own.
void share(const Strangers* strangers) {
  raw_syscall(__NR_mmap, as_word(strangers), sizeof *strangers, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

char* first_hits(const ProbedImage& image) {
  return reinterpret_cast<char*>(&memory().probe_hits[image.first]);
}

uint64_t offset_in_page(const void* address) {
  return reinterpret_cast<uint64_t>(address) & (page - 1);
}

// A plain binary search through a large plan misses the cache at every step.
uint32_t choose_buckets(ProbedImage& image, uint64_t end) {
  const uint64_t size = end - image.start;
  image.bucket_shift = 4;
  while (size >> image.bucket_shift > image.count / 8) ++image.bucket_shift;
  return static_cast<uint32_t>(size >> image.bucket_shift) + 2;
}

void fill_buckets(const ProbedImage& image, uint32_t count) {
  uint32_t probe = image.first;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t start = image.start + (uint64_t{i} << image.bucket_shift);
    while (probe < image.first + image.count && address_of(image, probe) < start) ++probe;
    image.buckets[i] = probe;
  }
}

// Then a counter is at the same place of its page in every run.
bool hits_have_pages() {
  return offset_in_page(memory().probe_hits.first) == 0;
}

// Code first, which will not be writable, then tables, then the pages of the counters.
bool allocate(ProbedImage& image, uint64_t end) {
  image.slot_count = count_slots(image);
  image.jump_count = count_jumps(image);
  const uint32_t bucket_count = choose_buckets(image, end);
  const uint64_t strangers = image.jump_count == 0 ? 0 : sizeof *image.strangers;
  const uint64_t tables =
      (image.count + bucket_count) * sizeof(uint32_t) + image.jump_count * sizeof *image.calls;
  image.hits_size =
      image.jump_count == 0 || !hits_have_pages()
          ? 0
          : whole_pages(offset_in_page(first_hits(image)) + image.count * sizeof(uint32_t));
  const uint64_t code = code_size(image);
  image.memory_size = code + strangers + whole_pages(tables) + image.hits_size;
  char* memory = map_near(image.start, end, image.memory_size);
  if (memory == nullptr) return false;
  image.slots = reinterpret_cast<Slot*>(memory);
  image.jumps = reinterpret_cast<JumpSlot*>(memory + whole_words(slots_size(image)));
  image.strangers = reinterpret_cast<Strangers*>(memory + code);
  if (strangers > 0) share(image.strangers);
  image.places = reinterpret_cast<uint32_t*>(memory + code + strangers);
  image.buckets = image.places + image.count;
  image.calls = reinterpret_cast<uint16_t*>(image.buckets + bucket_count);
  image.hits = memory + image.memory_size - image.hits_size;
  fill_buckets(image, bucket_count);
  return true;
}

bool is_code(const ElfW(Phdr) & segment) {
  return segment.p_type == PT_LOAD && (segment.p_flags & (PF_R | PF_X)) == (PF_R | PF_X);
}

struct Range {
  uint32_t first;
  uint32_t last;
};

// The probes whose instructions are in this segment.
Range probes_in(const ElfW(Phdr) & segment, const ProbedImage& image) {
  const uint32_t number = protocol::image_of(probes()[image.first].address);
  const auto bound = [&](uint64_t offset) {
    return lower_bound(image.first, image.first + image.count,
                       protocol::make_address(number, offset));
  };
  const uint64_t end = segment.p_vaddr + segment.p_filesz;
  Range range = {bound(segment.p_vaddr), bound(end)};
  while (range.first < range.last) {
    const Probe& last = probes()[range.last - 1];
    if (protocol::offset_of(last.address) + last.length <= end) break;
    --range.last;
  }
  return range;
}

// A plan that is out of order would make probes that no search finds again.
bool in_order(const ProbedImage& image, uint32_t number) {
  const Probe* first = probes() + image.first;
  const Probe* last = first + image.count - 1;
  if (protocol::image_of(first->address) != number || protocol::image_of(last->address) != number)
    return false;
  for (const Probe* probe = first; probe < last; ++probe)
    if (probe[0].address >= probe[1].address) return false;
  return true;
}

// What was used of the memory for code so far.
struct Used {
  uint32_t slots = 0, jumps = 0;
};

JumpNotes notes_of(const ProbedImage& image, uint32_t number, const Used& used) {
  auto* hits =
      reinterpret_cast<protocol::Shared<uint32_t>*>(image.hits + offset_in_page(first_hits(image)));
  return {image.calls + used.jumps, image.strangers, hits + (number - image.first)};
}

bool place_jump(ProbedImage& image, uint32_t number, const uint8_t* code, Used& used) {
  if (image.hits_size == 0 || !gets_jump(image, number)) return false;
  const Probe& probe = probes()[number];
  if (!fill_jump(image.jumps[used.jumps], probe, number, code, notes_of(image, number, used)))
    return false;
  image.calls[used.jumps++] = cool;
  return true;
}

uint32_t place_for(ProbedImage& image, uint32_t number, Used& used) {
  const Probe& probe = probes()[number];
  const auto* code = reinterpret_cast<const uint8_t*>(address_of(image, number));
  if (*code != probe.first_byte || *code == breakpoint) return not_installed;
  if (place_jump(image, number, code, used)) return first_jump + used.jumps - 1;
  if (!needs_slot(probe)) return emulated;
  if (!fill_slot(image.slots[used.slots], number, probe, code)) return not_installed;
  return first_slot + used.slots++;
}

// Decides where each probe's instruction will be executed; the code stays as it is. False: some of
// the probes cannot be.
bool prepare(ProbedImage& image, const LoadedFile& file) {
  Used used;
  uint32_t installed = 0;
  for (size_t s = 0; s < file.segment_count; ++s) {
    if (!is_code(file.segments[s])) continue;
    const Range range = probes_in(file.segments[s], image);
    for (uint32_t i = range.first; i < range.last; ++i) {
      uint32_t& place = image.places[i - image.first];
      place = place_for(image, i, used);
      if (place != not_installed) ++installed;
    }
  }
  return installed == image.count;
}

bool protect(uint64_t start, uint64_t end, long protection) {
  return !failed(raw_syscall(__NR_mprotect, static_cast<long>(start),
                             static_cast<long>(end - start), protection));
}

long protection_of(const ElfW(Phdr) & segment) {
  return PROT_READ | PROT_EXEC | ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0);
}

bool accesses_are_armed = false;

bool is_armed(const Probe& probe) {
  return accesses_are_armed || (probe.flags & protocol::probe_accesses) == 0;
}

void set_breakpoints(const ProbedImage& image, const Range& range) {
  for (uint32_t i = range.first; i < range.last; ++i) {
    const uint32_t place = image.places[i - image.first];
    auto* code = reinterpret_cast<uint8_t*>(address_of(image, i));
    if (place >= first_jump)
      write_jump(image.jumps[place - first_jump], code);
    else if (place != not_installed && is_armed(probes()[i]))
      __atomic_store_n(code, breakpoint, __ATOMIC_RELEASE);
  }
}

// Of what was written at a probe.
uint64_t end_of(const ProbedImage& image, uint32_t number) {
  const bool is_jump = image.places[number - image.first] >= first_jump;
  return address_of(image, number) + (is_jump ? sizeof(JumpSlot::original) : 1);
}

// False: this segment's code could not be written and has no probes, or it stays writable.
bool patch(ProbedImage& image, const ElfW(Phdr) & segment) {
  const Range range = probes_in(segment, image);
  if (range.first == range.last) return true;
  const uint64_t from = address_of(image, range.first) & ~(page - 1);
  const uint64_t to = whole_pages(end_of(image, range.last - 1));
  if (!protect(from, to, writable_code)) {
    for (uint32_t i = range.first; i < range.last; ++i)
      image.places[i - image.first] = not_installed;
    return false;
  }
  set_breakpoints(image, range);
  return protect(from, to, protection_of(segment));
}

void patch_all(ProbedImage& image, const LoadedFile& file) {
  for (size_t i = 0; i < file.segment_count; ++i)
    if (is_code(file.segments[i]) && !patch(image, file.segments[i]))
      process_degraded(protocol::no_probe_memory);
}

void release(ProbedImage& image) {
  if (image.slots != nullptr)
    raw_syscall(__NR_munmap, as_word(image.slots), static_cast<long>(image.memory_size));
  image.slots = nullptr;
  image.slot_count = image.jump_count = 0;
}

bool seal_slots(const ProbedImage& image) {
  const auto start = reinterpret_cast<uint64_t>(image.slots);
  return code_size(image) == 0 || protect(start, start + code_size(image), PROT_READ | PROT_EXEC);
}

}  // namespace

void add_probes(ProbedImage& image, uint32_t number, const LoadedFile& file) {
  image.first = lower_bound(0, memory().probes.count, protocol::make_address(number, 0));
  image.count =
      lower_bound(image.first, memory().probes.count, protocol::make_address(number + 1, 0)) -
      image.first;
  if (image.count == 0) return;
  if (!in_order(image, number)) return process_degraded(protocol::probe_mismatch);
  image.bias = file.bias;
  image.identity = file.identity;
  image.start = address_of(image, image.first);
  const uint64_t end = address_of(image, image.first + image.count - 1) + 1;
  if (!allocate(image, end)) return process_degraded(protocol::no_probe_memory);
  if (!prepare(image, file)) process_degraded(protocol::probe_mismatch);
  if (!seal_slots(image) || (attached() && !bind_hits(image))) {
    release(image);
    return process_degraded(protocol::no_probe_memory);
  }
  image.file = file;
  __atomic_store_n(&image.end, end, __ATOMIC_RELEASE);
  patch_all(image, file);
}

void arm_accesses(ProbedImage& image) {
  accesses_are_armed = true;
  if (is_loaded(image)) patch_all(image, image.file);
}

void forget(ProbedImage& image) {
  __atomic_store_n(&image.end, 0, __ATOMIC_RELEASE);
  release(image);
}

bool bind_hits(const ProbedImage& image) {
  if (image.hits_size == 0) return true;
  if (!hits_have_pages()) return false;
  const auto from = reinterpret_cast<uint64_t>(first_hits(image)) & ~(page - 1);
  // With no size, it is mapped once more.
  return !failed(raw_syscall(__NR_mremap, static_cast<long>(from), 0,
                             static_cast<long>(image.hits_size), MREMAP_MAYMOVE | MREMAP_FIXED,
                             as_word(image.hits)));
}

void remove_probes(ProbedImage& image, const Probe* planned) {
  for (uint32_t i = 0; i < image.count; ++i) {
    const Probe& probe = planned[image.first + i];
    const uint64_t address = image.bias + protocol::offset_of(probe.address);
    if (image.places[i] >= first_jump) {
      const JumpSlot& slot = image.jumps[image.places[i] - first_jump];
      write_code(address, slot.original, sizeof slot.original);
    } else if (image.places[i] != not_installed) {
      write_code(address, probe.first_byte);
    }
  }
  forget(image);
}

uint32_t find_probe(const ProbedImage& image, uint64_t address) {
  const uint64_t end = __atomic_load_n(&image.end, __ATOMIC_ACQUIRE);
  if (address < image.start || address >= end) return protocol::none;
  const uint32_t number = protocol::image_of(probes()[image.first].address);
  const protocol::Address wanted = protocol::make_address(number, address - image.bias);
  const uint32_t* bucket = image.buckets + ((address - image.start) >> image.bucket_shift);
  const uint32_t last = bucket[1];
  const uint32_t probe = lower_bound(bucket[0], last, wanted);
  const bool found = probe < last && probes()[probe].address == wanted &&
                     image.places[probe - image.first] != not_installed;
  return found ? probe : protocol::none;
}

}  // namespace unflake::agent
