#include "agent/record/sites.h"

#include <dlfcn.h>
#include <unwind.h>

#include "agent/hash.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"

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

struct Unwinding {
  StackSnapshot& stack;
  KnownStack* known;
};

// A frame that was called has its return address below the stack pointer of its caller; one that
// was interrupted by a signal has none.
void note_place(KnownStack& known, uint32_t frame, uint64_t address, uint64_t stack_pointer) {
  known.places[frame] = stack_pointer - sizeof address;
  known.is_repeatable &= *reinterpret_cast<const uint64_t*>(known.places[frame]) == address;
}

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  const Unwinding& unwinding = *static_cast<Unwinding*>(argument);
  const uint64_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  if (is_agent(address)) return _URC_NO_REASON;
  StackSnapshot& stack = unwinding.stack;
  if (unwinding.known != nullptr)
    note_place(*unwinding.known, stack.count, address, _Unwind_GetCFA(context));
  stack.frames[stack.count++] = address;
  return stack.count == deepest_stack ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void unwind(KnownStack& known) {
  known.stack.count = 0;
  known.is_numbered = false;
  known.is_repeatable = true;
  known.closed_images = closed_images();
  Unwinding unwinding{known.stack, &known};
  _Unwind_Backtrace(add_frame, &unwinding);
}

bool is_still(const KnownStack& known, const Caller& caller) {
  const StackSnapshot& stack = known.stack;
  if (!known.is_repeatable || stack.count == 0 || known.closed_images != closed_images() ||
      known.places[0] != reinterpret_cast<uint64_t>(caller.frame) - sizeof(uint64_t))
    return false;
  for (uint32_t i = 0; i < stack.count; ++i)
    if (*reinterpret_cast<const uint64_t*>(known.places[i]) != stack.frames[i]) return false;
  return true;
}

uint64_t hash_here(const Address* frames, uint32_t count) {
  uint64_t hash = count;
  for (uint32_t i = 0; i < count; ++i) hash = mix(hash, frames[i]);
  return hash != 0 ? hash : 1;
}

bool write_frames(Stack& stack, const Address* frames, uint32_t count) {
  const Tables& out = memory();
  const uint32_t first = out.frames.used->add(count);
  if (first > out.frames.count || count > out.frames.count - first) {
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
  Unwinding unwinding{stack, nullptr};
  _Unwind_Backtrace(add_frame, &unwinding);
}

KnownStack* stack_of(const Caller& caller) {
  ThreadExtra* extra = thread_extra();
  if (extra == nullptr) return nullptr;
  const uint64_t hash = mix(reinterpret_cast<uint64_t>(caller.address), 0);
  KnownStack& known = extra->known[hash % (sizeof extra->known / sizeof extra->known[0])];
  if (!is_still(known, caller)) unwind(known);
  return &known;
}

uint32_t number_of_stack(KnownStack& known) {
  if (!known.is_numbered) known.number = number_of_stack(known.stack);
  known.is_numbered = true;
  return known.number;
}

uint32_t number_of_stack(const StackSnapshot& stack) {
  Address frames[deepest_stack];
  for (uint32_t i = 0; i < stack.count; ++i)
    frames[i] = address_in(stack.frames[i], image_at(stack.frames[i]));
  const uint64_t hash = hash_here(frames, stack.count);
  const Tables& out = memory();
  for (uint32_t tries = 0; tries < 64; ++tries) {
    const uint32_t number = place_of(hash, tries, out.stacks.count);
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
