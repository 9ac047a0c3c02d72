#include <dlfcn.h>

#include "agent/real.h"
#include "agent/record/images.h"
#include "agent/record/memory.h"
#include "agent/record/sites.h"

namespace unflake::agent {

// dlopen has no hook: it checks who calls it.
HOOK(int, dlclose, (void* library)) {
  resolve_real_functions();
  const int result = real::dlclose(library);
  uint64_t start, end;
  while (attached() && forget_closed_image(start, end)) forget_places(start, end);
  return result;
}

}  // namespace unflake::agent
