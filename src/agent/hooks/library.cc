#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>

#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/sites.h"
#include "agent/schedule/accesses.h"

namespace unflake::agent {

// dlopen has no hook: it checks who calls it.
HOOK(int, dlclose, (void* library)) {
  resolve_real_functions();
  const int result = real::dlclose(library);
  uint64_t start, end;
  while (attached() && forget_closed_image(start, end)) forget_places(start, end);
  return result;
}

namespace {

constexpr uint64_t most_kept = uint64_t{1} << 30;
constinit uint64_t kept = 0;  // bytes, of the one thread that runs at a time

// Whoever gets memory that another thread has freed comes after that thread, by locks of the
// allocator that nobody sees. So it is kept, and nobody gets it.
bool is_to_be_kept(void* memory) {
  if (memory == nullptr || kept >= most_kept || !watches_races()) return false;
  kept += malloc_usable_size(memory);
  return true;
}

}  // namespace

HOOK(void, free, (void* memory)) {
  if (is_to_be_kept(memory)) return;
  resolve_real_functions();
  if (real::free != nullptr) real::free(memory);
}

}  // namespace unflake::agent
