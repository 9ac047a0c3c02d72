#include "agent/record/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/raw.h"
#include "agent/record/threads.h"
#include "protocol/memory_layout.h"

namespace unflake::agent {

const protocol::Header* detail::header = nullptr;
protocol::Tables detail::tables;
bool detail::scheduled = false;
protocol::Quiescence* detail::quiescence = nullptr;

namespace {

using namespace protocol;

bool plan_fits(const Header& header) {
  return header.plan_begin % page == 0 && header.plan_end % page == 0 &&
         header.plan_begin >= page && header.plan_begin <= header.plan_end &&
         header.plan_end <= header.size;
}

bool acceptable(const Header& header, uint64_t generation, uint64_t size) {
  constexpr uint64_t layout = native_layout();
  return header.magic == magic && header.version == version && header.layout == layout &&
         header.generation == generation && header.size == size && plan_fits(header);
}

// Maps the memory and protects what must not be written; nullptr: it is not of this run.
char* map(int file, uint64_t generation) {
  struct stat status {};
  if (failed(raw_syscall(__NR_fstat, file, as_word(&status))) ||
      static_cast<size_t>(status.st_size) < sizeof(Header))
    return nullptr;
  const long mapped =
      raw_syscall(__NR_mmap, 0, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (failed(mapped)) return nullptr;
  char* base = reinterpret_cast<char*>(mapped);
  const Header& header = *reinterpret_cast<const Header*>(base);
  if (!acceptable(header, generation, static_cast<uint64_t>(status.st_size)) ||
      !find_tables(base, header, detail::tables)) {
    raw_syscall(__NR_munmap, mapped, status.st_size);
    return nullptr;
  }
  raw_syscall(__NR_mprotect, mapped, page, PROT_READ);
  raw_syscall(__NR_mprotect, mapped + static_cast<long>(header.plan_begin),
              static_cast<long>(header.plan_end - header.plan_begin), PROT_READ);
  return base;
}

void find_quiescence() {
  Elements<Quiescence> found;
  char* base = reinterpret_cast<char*>(const_cast<Header*>(detail::header));
  const bool is_there =
      attached() && find_table(base, *detail::header, TableKind::quiescence, found);
  detail::quiescence = is_there && found.count == 1 ? found.first : nullptr;
}

}  // namespace

bool attach(const char* name) {
  if (name == nullptr) return false;
  char* path = nullptr;
  const uint64_t generation = strtoull(name, &path, 10);
  if (path == name || *path != ':') return false;
  const long file = raw_syscall(__NR_openat, AT_FDCWD, as_word(path + 1), O_RDWR | O_CLOEXEC);
  if (failed(file)) return false;
  detail::header = reinterpret_cast<const Header*>(map(static_cast<int>(file), generation));
  raw_syscall(__NR_close, file);
  ScheduleTables schedule;
  detail::scheduled = find_schedule(schedule);
  find_quiescence();
  return attached();
}

void let_go() {
  detail::header = nullptr;
  detail::scheduled = false;
  detail::quiescence = nullptr;
}

bool find_schedule(ScheduleTables& tables) {
  char* base = reinterpret_cast<char*>(const_cast<Header*>(detail::header));
  return attached() && find_tables(base, *detail::header, tables);
}

namespace {

constexpr uint32_t modest = 32;  // chunks that a thread may always take

// One chatty thread must not take all the room from the others.
bool may_take_chunk() {
  const auto& chunks = memory().chunks;
  const uint32_t used = chunks.used->load();
  return used < chunks.count && (this_thread.chunks_own < modest || used < chunks.count / 2);
}

void link_chunk(uint32_t chunk) {
  const Tables& out = memory();
  if (this_thread.chunk == none)
    out.threads[this_thread.number].first_chunk = chunk;
  else
    out.chunks[this_thread.chunk].next.store(chunk + 1);
  this_thread.chunk = chunk;
  ++this_thread.chunks_own;
}

bool take_chunk() {
  if (!may_take_chunk()) return false;
  const Tables& out = memory();
  const uint32_t chunk = out.chunks.used->add(1);
  if (chunk >= out.chunks.count) return false;
  out.chunks[chunk].thread.store(this_thread.number + 1);
  link_chunk(chunk);
  return true;
}

void count_lost_event() {
  memory().dropped[dropped_events].add(1);
  if (this_thread.number != none) memory().threads[this_thread.number].events_dropped.add_alone(1);
}

}  // namespace

namespace {

// For lack of room even the first of a burst may have to go.
bool says_little(const Event& event) {
  return event.flags == 0 && event.exit_ns - event.enter_ns <= short_wait_ns &&
         orders_nothing(event.api);
}

// Once, or once more.
bool is_chunk_full() {
  if (this_thread.chunk == none) return true;
  const uint64_t written = memory().chunks[this_thread.chunk].written.load();
  return written > 0 && written % events_per_chunk == 0;
}

// Where the next event goes then.
void choose_room() {
  const bool has_chunk = this_thread.chunk != none;
  if (has_chunk && !this_thread.chunk_matters)
    this_thread.wraps = Wraps::burst;
  else
    this_thread.wraps = take_chunk() ? Wraps::none : Wraps::for_lack_of_room;
  this_thread.chunk_matters = false;
}

void count_overwritten(Chunk& chunk) {
  const uint64_t written = chunk.written.load();
  if (written < events_per_chunk) return;
  if (this_thread.wraps == Wraps::burst || says_little(chunk.events[written % events_per_chunk]))
    chunk.left_out.add_alone(1);
  else
    count_lost_event();
}

}  // namespace

uint64_t visits_that_matter() {
  const auto& chunks = memory().chunks;
  const uint32_t used = chunks.used->load();
  if (used < chunks.count / 4) return 1000;
  return used < chunks.count / 2 ? 100 : 10;
}

Event* next_event(Worth worth) {
  const Tables& out = memory();
  if (this_thread.number == none) {
    count_lost_event();
    return nullptr;
  }
  if (is_chunk_full()) choose_room();
  if (this_thread.chunk == none) {
    count_lost_event();
    return nullptr;
  }
  Chunk& chunk = out.chunks[this_thread.chunk];
  count_overwritten(chunk);
  if (worth == Worth::matters) this_thread.chunk_matters = true;
  Event* event = &chunk.events[chunk.written.load() % events_per_chunk];
  *event = {};
  chunk.written.add_alone(1);
  return event;
}

void keep_event(const Event& event) {
  if (this_thread.chunk == none) return;
  const Chunk& chunk = memory().chunks[this_thread.chunk];
  if (&event >= chunk.events && &event < chunk.events + events_per_chunk)
    this_thread.chunk_matters = true;
}

}  // namespace unflake::agent
