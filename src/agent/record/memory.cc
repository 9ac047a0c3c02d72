#include "agent/record/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/raw.h"
#include "agent/record/threads.h"

namespace unflake::agent {

char* detail::base = nullptr;

namespace {

using namespace protocol;

bool fits(const Table& table, size_t element, uint64_t begin, uint64_t end) {
  return table.count == 0 || (table.offset % 8 == 0 && table.offset >= begin &&
                              uint64_t{table.offset} + uint64_t{table.count} * element <= end);
}

bool plan_fits(const Header& header) {
  const Plan& plan = header.plan;
  const uint64_t end = header.plan_end;
  return plan.rules.count <= max_rules && end >= tables_offset && end <= header.size &&
         fits(plan.images, sizeof(PlanImage), tables_offset, end) &&
         fits(plan.skips, sizeof(SkipRange), tables_offset, end) &&
         fits(plan.sites, sizeof(PlanSite), tables_offset, end) &&
         fits(plan.rules, sizeof(Rule), tables_offset, end) &&
         fits(plan.probes, sizeof(Probe), tables_offset, end) &&
         fits(plan.system_prefixes, sizeof(uint32_t), tables_offset, end) &&
         fits(plan.text, 1, tables_offset, end) &&
         fits(plan.probe_hits, sizeof(uint32_t), end, header.size) &&
         plan.probe_hits.count == plan.probes.count;
}

bool acceptable(const Header& header, uint64_t generation, uint64_t size) {
  return header.magic == magic && header.version == version && header.generation == generation &&
         header.size == size && header.report_offset == report_offset && plan_fits(header);
}

char* map(int file, uint64_t generation) {
  struct stat status {};
  if (failed(raw_syscall(__NR_fstat, file, as_word(&status))) ||
      static_cast<size_t>(status.st_size) < tables_offset)
    return nullptr;
  const long mapped =
      raw_syscall(__NR_mmap, 0, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (failed(mapped)) return nullptr;
  char* base = reinterpret_cast<char*>(mapped);
  const Header& header = *reinterpret_cast<const Header*>(base);
  if (!acceptable(header, generation, static_cast<uint64_t>(status.st_size))) {
    raw_syscall(__NR_munmap, mapped, status.st_size);
    return nullptr;
  }
  raw_syscall(__NR_mprotect, mapped, page, PROT_READ);
  raw_syscall(__NR_mprotect, mapped + static_cast<long>(tables_offset),
              static_cast<long>(header.plan_end / page * page - tables_offset), PROT_READ);
  return base;
}

}  // namespace

bool attach(const char* name) {
  if (name == nullptr) return false;
  char* path = nullptr;
  const uint64_t generation = strtoull(name, &path, 10);
  if (path == name || *path != ':') return false;
  const long file = raw_syscall(__NR_openat, AT_FDCWD, as_word(path + 1), O_RDWR | O_CLOEXEC);
  if (failed(file)) return false;
  detail::base = map(static_cast<int>(file), generation);
  raw_syscall(__NR_close, file);
  return detail::base != nullptr;
}

namespace {

constexpr uint32_t modest = 32;  // chunks that a thread may always take

// One chatty thread must not take all room from the others.
bool may_take_chunk() {
  const uint32_t used = report().chunks_used.load();
  return used < max_chunks && (this_thread.chunks_own < modest || used < max_chunks / 2);
}

void link_chunk(uint32_t chunk) {
  Report& out = report();
  if (this_thread.chunk == none)
    out.threads[this_thread.number].first_chunk = chunk;
  else
    out.chunks[this_thread.chunk].next.store(chunk + 1);
  this_thread.chunk = chunk;
  ++this_thread.chunks_own;
}

bool take_chunk() {
  if (!may_take_chunk()) return false;
  Report& out = report();
  const uint32_t chunk = out.chunks_used.add(1);
  if (chunk >= max_chunks) return false;
  out.chunks[chunk].thread.store(this_thread.number + 1);
  link_chunk(chunk);
  return true;
}

void count_lost_event() {
  report().dropped[dropped_events].add(1);
  if (this_thread.number != none) report().threads[this_thread.number].events_dropped.add_alone(1);
}

}  // namespace

Event* next_event() {
  Report& out = report();
  if (this_thread.number == none) {
    count_lost_event();
    return nullptr;
  }
  const bool full =
      this_thread.chunk == none || out.chunks[this_thread.chunk].written.load() >= events_per_chunk;
  if (full && !take_chunk()) {
    count_lost_event();
    if (this_thread.chunk == none) return nullptr;
  }
  Chunk& chunk = out.chunks[this_thread.chunk];
  Event* event = &chunk.events[chunk.written.load() % events_per_chunk];
  *event = {};
  chunk.written.add_alone(1);
  return event;
}

}  // namespace unflake::agent
