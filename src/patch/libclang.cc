#include "patch/libclang.h"

#include <dlfcn.h>

#include <cassert>
#include <optional>

namespace unflake {
namespace {

// Numbers of cursor kinds differ between versions, so that only this one will do. The linker's
// path comes first; the others are where Debian and LLVM's own packages keep it.
constexpr const char* library_names[] = {
    "libclang-19.so.19",
    "libclang-19.so.1",
    "/usr/lib/llvm-19/lib/libclang.so.1",
    "/usr/lib/llvm-19/lib/libclang.so",
};

LibClang functions;

template <class Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Error missing(const std::string& why) {
  return usage_error("literals in sources are found with libclang 19, which cannot be loaded", why,
                     "install it (Debian: libclang1-19 and libclang-common-19-dev)");
}

std::optional<Error> load() {
  void* library = nullptr;
  std::string why;
  for (const char* name : library_names) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (why.empty()) why = ::dlerror();
  }
  if (library == nullptr) return missing(why);
#define UNFLAKE_RESOLVE(name) \
  if (!resolve(library, "clang_" #name, functions.name)) return missing("no clang_" #name);
  UNFLAKE_LIBCLANG_FUNCTIONS(UNFLAKE_RESOLVE)
#undef UNFLAKE_RESOLVE
  return std::nullopt;
}

}  // namespace

Result<void> load_libclang() {
  static const std::optional<Error> problem = load();
  if (problem) return *problem;
  return {};
}

const LibClang& clang() {
  assert(functions.createIndexWithOptions != nullptr);
  return functions;
}

}  // namespace unflake
