#include "agent/record/threads.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/hash.h"
#include "agent/process.h"
#include "agent/raw.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/sites.h"
#include "agent/record/visit.h"
#include "agent/schedule/virtual_clock.h"

namespace unflake::agent {

constinit thread_local ThreadState this_thread{};
void (*at_thread_end)() = nullptr;

namespace {

using namespace protocol;

pthread_key_t end_key;
bool end_key_made = false;

uint32_t next_ordinal(uint64_t place) {
  ThreadExtra* extra = thread_extra();
  if (extra == nullptr) return 0;
  const size_t size = sizeof extra->spawned / sizeof extra->spawned[0];
  for (size_t i = 0; i < size; ++i) {
    SpawnCount& spawn = extra->spawned[(place + i) % size];
    if (spawn.place == 0) spawn.place = place;
    if (spawn.place == place) return spawn.count++;
  }
  return 0;
}

TallyTable* take_free_table(uint32_t thread) {
  const Tables& out = memory();
  for (uint32_t i = 0; i < out.tallies.count; ++i) {
    TallyTable& table = out.tallies[(thread + i) % out.tallies.count];
    if (table.thread.load() != 0 || !table.thread.change(0, thread + 1)) continue;
    memset(table.tallies, 0, sizeof table.tallies);
    return &table;
  }
  return nullptr;
}

// What a thread did outlives its table, which the next thread needs.
void keep_tallies(const TallyTable& table, uint32_t thread) {
  const Tables& out = memory();
  for (const Tally& tally : table.tallies) {
    if (tally.key == 0 || tally.site == none || tally.visits.load() == 0) continue;
    const uint32_t number = out.past_tallies.used->add(1);
    if (number >= out.past_tallies.count) {
      out.dropped[dropped_tallies].add(1);
      continue;
    }
    PastTally& past = out.past_tallies[number];
    past.site = tally.site;
    past.visits = tally.visits.load();
    past.waited_ns = tally.waited_ns.load();
    past.thread.store(thread + 1);
  }
}

// Its program was killed, or has become another one by exec.
bool is_gone(const Thread& thread) {
  if (thread.process >= memory().processes.count || thread.process == process_number())
    return false;
  const Process& process = memory().processes[thread.process];
  return process.pid == static_cast<uint32_t>(raw_syscall(__NR_getpid)) ||
         raw_syscall(__NR_kill, process.pid, 0) == -ESRCH;
}

void free_tables_of_the_dead() {
  constexpr uint32_t being_freed = none;
  for (TallyTable& table : memory().tallies) {
    const uint32_t owner = table.thread.load();
    if (owner == 0 || owner > memory().threads.count || !is_gone(memory().threads[owner - 1]))
      continue;
    if (!table.thread.change(owner, being_freed)) continue;
    keep_tallies(table, owner - 1);
    table.thread.store(0);
  }
}

TallyTable* take_table(uint32_t thread) {
  if (TallyTable* table = take_free_table(thread)) return table;
  free_tables_of_the_dead();
  TallyTable* table = take_free_table(thread);
  if (table == nullptr) process_degraded(no_thread_memory);
  return table;
}

// Titles of threads that have not begun yet, for when they do.
struct EarlyTitle {
  Shared<uint64_t> handle;  // 0: free
  char text[sizeof(ThreadTitle)];
};
constexpr uint64_t being_written = UINT64_MAX;
EarlyTitle early_titles[64];

void write_title(uint32_t number, const char* title) {
  if (number >= memory().titles.count) return;
  ThreadTitle& room = memory().titles[number];
  for (size_t i = 0; i + 1 < sizeof room.text; ++i) {
    room.text[i] = *title;
    if (*title != 0) ++title;
  }
}

void write_early_title(uint32_t number, uint64_t handle) {
  for (EarlyTitle& early : early_titles) {
    if (early.handle.load() != handle || !early.handle.change(handle, being_written)) continue;
    write_title(number, early.text);
    early.handle.store(0);
  }
}

// The latest thread of this process that has or had it.
uint32_t number_of_handle(uint64_t handle, Titled titled) {
  const Tables& out = memory();
  const uint32_t used = out.threads.used->load();
  for (uint32_t i = used < out.threads.count ? used : out.threads.count; i > 0; --i) {
    const Thread& thread = out.threads[i - 1];
    if (thread.state.load() == (titled == Titled::living ? 2 : 3) && thread.handle == handle &&
        thread.process == process_number())
      return i - 1;
  }
  return none;
}

void keep_early_title(uint64_t handle, const char* title) {
  for (EarlyTitle& early : early_titles) {
    if (!early.handle.change(0, being_written)) continue;
    for (size_t i = 0; i + 1 < sizeof early.text; ++i) {
      early.text[i] = *title;
      if (*title != 0) ++title;
    }
    early.handle.store(handle);
    return;
  }
}

uint32_t take_number() {
  const Tables& out = memory();
  const uint32_t number = out.threads.used->add(1);
  if (number < out.threads.count) return number;
  out.dropped[dropped_threads].add(1);
  return none;
}

void write_thread(uint32_t number, const Birth& birth) {
  Thread& thread = memory().threads[number];
  thread.state.store(1);
  thread.process = process_number();
  thread.tid = static_cast<uint32_t>(raw_syscall(__NR_gettid));
  thread.parent = birth.parent;
  thread.name = birth.name;
  thread.thread_class = birth.thread_class;
  thread.spawn_stack = birth.stack;
  thread.ordinal = birth.ordinal;
  thread.first_chunk = none;
  thread.handle = pthread_self();
  thread.started_ns = traced_now();
  thread.state.store(2);
}

void give_table_back() {
  Tally* tallies = this_thread.tallies;
  this_thread.tallies = nullptr;
  if (tallies == nullptr) return;
  auto* table = reinterpret_cast<TallyTable*>(reinterpret_cast<char*>(tallies) -
                                              offsetof(TallyTable, tallies));
  keep_tallies(*table, this_thread.number);
  table->thread.store(0);
}

// Runs among the destructors of thread-specific data, as late as it can: what the others do still
// counts.
void end_thread(void* rounds) {
  const auto round = reinterpret_cast<uintptr_t>(rounds);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
    pthread_setspecific(end_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  if (this_thread.stage != Stage::lives) return;
  visit_thread_end();
  this_thread.stage = Stage::ended;
  give_table_back();
  if (this_thread.was_late) late_thread_ended();
  if (this_thread.number != none) {
    Thread& thread = memory().threads[this_thread.number];
    thread.ended_ns.store(traced_now());
    thread.state.store(3);
  }
  if (this_thread.extra != nullptr)
    raw_syscall(__NR_munmap, as_word(this_thread.extra), sizeof(ThreadExtra));
  this_thread.extra = nullptr;
  if (at_thread_end != nullptr) at_thread_end();
}

void begin(const Birth& birth) {
  this_thread.stage = Stage::lives;
  this_thread.name = birth.name;
  this_thread.thread_class = birth.thread_class;
  this_thread.chunk = none;
  this_thread.chunks_own = 0;
  this_thread.wraps = Wraps::none;
  this_thread.chunk_matters = false;
  this_thread.was_late = false;
  this_thread.tallies = nullptr;
  this_thread.number = take_number();
  if (end_key_made) pthread_setspecific(end_key, reinterpret_cast<void*>(1));
  if (this_thread.number == none) return;
  write_thread(this_thread.number, birth);
  write_early_title(this_thread.number, pthread_self());
  TallyTable* table = take_table(this_thread.number);
  if (table != nullptr) this_thread.tallies = table->tallies;
}

// Only the thread that forked lives on. It is another one now, and what it writes must not mix
// with what its parent continues to write.
void after_fork_in_child() {
  if (!attached() || this_thread.stage != Stage::lives) return;
  const Birth birth = this_thread.extra != nullptr ? this_thread.extra->fork_birth : Birth{};
  forget_adding();
  meet_process();
  begin(birth);
}

void before_fork() {
  if (!attached() || !meet_this_thread()) return;
  ThreadExtra* extra = thread_extra();
  if (extra != nullptr) extra->fork_birth = name_child();
}

}  // namespace

ThreadExtra* thread_extra() {
  if (this_thread.extra == nullptr) {
    const long mapped = raw_syscall(__NR_mmap, 0, sizeof(ThreadExtra), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(mapped)) return nullptr;
    this_thread.extra = reinterpret_cast<ThreadExtra*>(mapped);
  }
  return this_thread.extra;
}

// A thread that pthread_create did not make: its name can only say so.
bool meet_this_thread() {
  if (this_thread.stage == Stage::lives) return true;
  if (this_thread.stage == Stage::ended) return false;
  const uint64_t unknown = mix(hash_text("unknown"), 0);
  begin({mix(unknown, next_unknown_thread()), unknown, none, none, 0});
  return true;
}

void meet_first_thread() {
  end_key_made = pthread_key_create(&end_key, end_thread) == 0;
  pthread_atfork(before_fork, nullptr, after_fork_in_child);
  begin({main_thread, main_thread, none, none, 0});
}

void title_thread(pthread_t handle, const char* title, Titled titled) {
  if (!attached() || title == nullptr) return;
  Guard guard;
  if (!guard || !meet_this_thread()) return;
  if (handle == pthread_self()) return write_title(this_thread.number, title);
  if (const uint32_t number = number_of_handle(handle, titled); number != none)
    return write_title(number, title);
  if (titled == Titled::ended) return;
  keep_early_title(handle, title);
  // It may have begun in the meantime, and looked before there was anything to find.
  if (const uint32_t number = number_of_handle(handle, titled); number != none)
    write_early_title(number, handle);
}

Birth name_child() {
  StackSnapshot stack;
  take_stack(stack);
  const uint64_t place = hash_of_stack(stack) | 1;
  Birth birth;
  birth.parent = this_thread.number;
  birth.stack = number_of_stack(stack);
  birth.ordinal = next_ordinal(place);
  birth.thread_class = mix(place, this_thread.name);
  birth.name = mix(birth.thread_class, birth.ordinal + 1);
  return birth;
}

void meet_child(const Birth& birth) {
  begin(birth);
}

}  // namespace unflake::agent
