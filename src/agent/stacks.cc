#include "agent/stacks.h"

#include <dlfcn.h>
#include <unwind.h>

#include "agent/hash.h"
#include "agent/images.h"
#include "agent/memory.h"

namespace unflake::agent {
namespace {

using namespace protocol;

bool is_agent(uint64_t address) {
  static const dl_find_object own = [] {
    dl_find_object found{};
    _dl_find_object(reinterpret_cast<void*>(take_stack), &found);
    return found;
  }();
  return address - reinterpret_cast<uint64_t>(own.dlfo_map_start) <
         static_cast<uint64_t>(static_cast<char*>(own.dlfo_map_end) -
                               static_cast<char*>(own.dlfo_map_start));
}

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& stack = *static_cast<StackSnapshot*>(argument);
  const uint64_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  if (is_agent(address)) return _URC_NO_REASON;
  stack.frames[stack.count++] = address;
  return stack.count == deepest_stack ? _URC_END_OF_STACK : _URC_NO_REASON;
}

uint64_t hash_here(const Address* frames, uint32_t count) {
  uint64_t hash = count;
  for (uint32_t i = 0; i < count; ++i) hash = mix(hash, frames[i]);
  return hash != 0 ? hash : 1;
}

bool write_frames(Stack& stack, const Address* frames, uint32_t count) {
  Report& out = report();
  const uint32_t first = out.frames_used.add(count);
  if (first > max_frames - count) {
    stack.count = 0;
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) out.frames[first + i] = frames[i];
  stack.first = first;
  stack.count = count;
  stack.complete.store(1);
  return true;
}

}  // namespace

void take_stack(StackSnapshot& stack) {
  stack.count = 0;
  _Unwind_Backtrace(add_frame, &stack);
}

uint32_t number_of_stack(const StackSnapshot& stack) {
  Address frames[deepest_stack];
  for (uint32_t i = 0; i < stack.count; ++i)
    frames[i] = address_in(stack.frames[i], image_at(stack.frames[i]));
  const uint64_t hash = hash_here(frames, stack.count);
  Report& out = report();
  for (uint32_t tries = 0; tries < 32; ++tries) {
    const uint32_t number = static_cast<uint32_t>((hash + tries) % max_stacks);
    Stack& place = out.stacks[number];
    if (place.hash.load() == hash) return number;
    if (place.hash.change(0, hash)) {
      if (write_frames(place, frames, stack.count)) return number;
      break;
    }
    if (place.hash.load() == hash) return number;
  }
  out.dropped[dropped_stacks].add(1);
  return none;
}

uint64_t hash_of_stack(const StackSnapshot& stack) {
  uint64_t hash = stack.count;
  for (uint32_t i = 0; i < stack.count; ++i) {
    const LoadedImage* image = image_at(stack.frames[i]);
    hash = mix(hash, image != nullptr ? image->name_hash : 0);
    hash = mix(hash, image != nullptr ? stack.frames[i] - image->bias : 0);
  }
  return hash;
}

}  // namespace unflake::agent
