#include "agent/real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

extern "C" {
extern const unflake::agent::RealFunction first_real[] __asm__("__start_unflake_real")
    __attribute__((visibility("hidden")));
extern const unflake::agent::RealFunction end_of_real[] __asm__("__stop_unflake_real")
    __attribute__((visibility("hidden")));
}

namespace unflake::agent {
namespace {

bool is_libcs(void* function) {
  dl_find_object found{};
  return _dl_find_object(function, &found) == 0 &&
         strstr(found.dlfo_link_map->l_name, "/libc.so.") != nullptr;
}

// libc may give the oldest of several versions to a caller that asks for none. What comes before
// libc, a sanitizer, has no versions.
void* find(const RealFunction& function) {
  void* next = dlsym(RTLD_NEXT, function.name);
  if (function.version == nullptr || !is_libcs(next)) return next;
  void* found = dlvsym(RTLD_NEXT, function.name, function.version);
  return found != nullptr ? found : next;
}

}  // namespace

void resolve_real_functions() {
  static bool begun = false;
  if (begun) return;
  begun = true;  // the lookup itself may come by here: through a program's own malloc
  for (const RealFunction* function = first_real; function != end_of_real; ++function)
    *function->place = find(*function);
}

}  // namespace unflake::agent
