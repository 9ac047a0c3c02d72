#include "agent/recorder.h"

#include "agent/memory.h"
#include "agent/thread_state.h"

namespace unflake::agent {
namespace {

using namespace protocol;

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
