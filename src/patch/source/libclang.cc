#include "patch/source/source_unit.h"

#include <dlfcn.h>

#include <cassert>
#include <optional>

namespace unflake {
namespace {

// Numbers of cursor kinds differ between versions, so only this one will do. The linker's
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

namespace {

using Locate = decltype(LibClang::getSpellingLocation);

Spot spot(CXSourceLocation location, Locate locate) {
  CXFile file = nullptr;
  unsigned line = 0, column = 0, offset = 0;
  locate(location, &file, &line, &column, &offset);
  if (file == nullptr) return {};
  std::string name = take_text(clang().File_tryGetRealPathName(file));
  if (name.empty()) name = real_path(take_text(clang().getFileName(file)));
  return {std::move(name), static_cast<int>(line), offset};
}

CXChildVisitResult collect(CXCursor cursor, CXCursor, CXClientData data) {
  static_cast<std::vector<CXCursor>*>(data)->push_back(cursor);
  return CXChildVisit_Continue;
}

}  // namespace

std::string take_text(CXString text) {
  const char* characters = clang().getCString(text);
  std::string copy = characters != nullptr ? characters : "";
  clang().disposeString(text);
  return copy;
}

std::string spelling(CXCursor cursor) {
  return take_text(clang().getCursorSpelling(cursor));
}

std::vector<CXCursor> children(CXCursor cursor) {
  std::vector<CXCursor> found;
  clang().visitChildren(cursor, collect, &found);
  return found;
}

std::vector<CXCursor> arguments(CXCursor call) {
  std::vector<CXCursor> found;
  const int count = clang().Cursor_getNumArguments(call);
  for (int i = 0; i < count; ++i)
    found.push_back(clang().Cursor_getArgument(call, static_cast<unsigned>(i)));
  return found;
}

bool is_null(CXCursor cursor) {
  return clang().Cursor_isNull(cursor) != 0;
}

bool is_expression(CXCursor cursor) {
  return clang().isExpression(clang().getCursorKind(cursor)) != 0;
}

std::string identity(CXCursor declaration) {
  return take_text(clang().getCursorUSR(declaration));
}

std::string type_name(CXCursor cursor) {
  if (clang().getCursorType(cursor).kind == CXType_Invalid) return "";
  const CXType value = clang().getNonReferenceType(clang().getCursorType(cursor));
  const CXType plain = clang().getUnqualifiedType(clang().getCanonicalType(value));
  return take_text(clang().getTypeSpelling(plain));
}

Spot spelled_at(CXSourceLocation location) {
  return spot(location, clang().getSpellingLocation);
}

Spot expanded_at(CXSourceLocation location) {
  return spot(location, clang().getExpansionLocation);
}

Spot place_in_file(CXSourceLocation location) {
  return spot(location, clang().getFileLocation);
}

bool in_macro_body(CXCursor cursor) {
  const CXSourceLocation start = clang().getRangeStart(clang().getCursorExtent(cursor));
  const Spot spelled = spelled_at(start), in_file = spot(start, clang().getFileLocation);
  return spelled.offset != in_file.offset || spelled.file != in_file.file;
}

SourceExtent extent_of(CXCursor cursor) {
  const CXSourceRange range = clang().getCursorExtent(cursor);
  return {spot(clang().getRangeStart(range), clang().getFileLocation),
          spot(clang().getRangeEnd(range), clang().getFileLocation)};
}

std::vector<CXCursor> operands(CXCursor cursor) {
  std::vector<CXCursor> found;
  for (const CXCursor child : children(cursor))
    if (is_expression(child)) found.push_back(child);
  return found;
}

}  // namespace unflake
