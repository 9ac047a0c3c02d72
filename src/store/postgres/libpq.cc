#include "store/postgres/libpq.h"

#include <dlfcn.h>

#include "store/postgres/pg_connection.h"

namespace unflake {
namespace {

constexpr const char* library_name = "libpq.so.5";

[[noreturn]] void refuse(const std::string& why) {
  throw PgFailure(usage_error("a history on a server needs libpq, which cannot be loaded", why,
                              "install it (Debian: libpq5)"),
                  PgFailure::Cure::none);
}

LibPq load() {
  void* library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(::dlerror());
  LibPq functions;
#define UNFLAKE_RESOLVE(name)                                                                \
  functions.name = reinterpret_cast<decltype(functions.name)>(::dlsym(library, "PQ" #name)); \
  if (functions.name == nullptr) refuse("it has no PQ" #name);
  UNFLAKE_LIBPQ_FUNCTIONS(UNFLAKE_RESOLVE)
#undef UNFLAKE_RESOLVE
  return functions;
}

}  // namespace

const LibPq& pq() {
  static const LibPq functions = load();
  return functions;
}

}  // namespace unflake
