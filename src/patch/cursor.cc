#include "patch/cursor.h"

#include "patch/source_text.h"

namespace unflake {
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
