#include "agent/real.h"

#include <dlfcn.h>

extern "C" {
extern const unflake::agent::RealFunction first_real[] __asm__("__start_unflake_real")
    __attribute__((visibility("hidden")));
extern const unflake::agent::RealFunction end_of_real[] __asm__("__stop_unflake_real")
    __attribute__((visibility("hidden")));
}

namespace unflake::agent {

void resolve_real_functions() {
  static bool resolved = false;
  if (resolved) return;
  for (const RealFunction* function = first_real; function != end_of_real; ++function)
    *function->place = function->version != nullptr
                           ? dlvsym(RTLD_NEXT, function->name, function->version)
                           : dlsym(RTLD_NEXT, function->name);
  resolved = true;
}

}  // namespace unflake::agent
