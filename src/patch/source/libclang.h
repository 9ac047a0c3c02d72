#pragma once

#include <clang-c/CXCompilationDatabase.h>
#include <clang-c/Index.h>

#include <string>
#include <vector>

#include "util/result.h"

namespace unflake {

// Whoever walks down a syntax tree gives up there: generated code nests endlessly.
inline constexpr int deepest_syntax = 2000;

#define UNFLAKE_LIBCLANG_FUNCTIONS(USE)          \
  USE(createIndexWithOptions)                    \
  USE(parseTranslationUnit2)                     \
  USE(reparseTranslationUnit)                    \
  USE(disposeTranslationUnit)                    \
  USE(defaultReparseOptions)                     \
  USE(getTranslationUnitCursor)                  \
  USE(getNumDiagnostics)                         \
  USE(getDiagnostic)                             \
  USE(getDiagnosticSeverity)                     \
  USE(getDiagnosticSpelling)                     \
  USE(disposeDiagnostic)                         \
  USE(getCString)                                \
  USE(disposeString)                             \
  USE(visitChildren)                             \
  USE(getCursorKind)                             \
  USE(getCursorSpelling)                         \
  USE(getCursorType)                             \
  USE(getCursorReferenced)                       \
  USE(getCursorDefinition)                       \
  USE(getCursorSemanticParent)                   \
  USE(getCursorUSR)                              \
  USE(getCursorLocation)                         \
  USE(getCursorExtent)                           \
  USE(getCursorBinaryOperatorKind)               \
  USE(getCursorUnaryOperatorKind)                \
  USE(Cursor_isNull)                             \
  USE(Cursor_getNumArguments)                    \
  USE(Cursor_getArgument)                        \
  USE(Cursor_getVarDeclInitializer)              \
  USE(isExpression)                              \
  USE(getRangeStart)                             \
  USE(getRangeEnd)                               \
  USE(getSpellingLocation)                       \
  USE(getExpansionLocation)                      \
  USE(getFileLocation)                           \
  USE(Location_isInSystemHeader)                 \
  USE(File_tryGetRealPathName)                   \
  USE(getFileName)                               \
  USE(getCanonicalType)                          \
  USE(getNonReferenceType)                       \
  USE(getUnqualifiedType)                        \
  USE(isConstQualifiedType)                      \
  USE(CXXMethod_isConst)                         \
  USE(CXXMethod_isStatic)                        \
  USE(equalCursors)                              \
  USE(getNullCursor)                             \
  USE(getTypeSpelling)                           \
  USE(CompilationDatabase_fromDirectory)         \
  USE(CompilationDatabase_dispose)               \
  USE(CompilationDatabase_getCompileCommands)    \
  USE(CompilationDatabase_getAllCompileCommands) \
  USE(CompileCommand_getFilename)                \
  USE(CompileCommands_getSize)                   \
  USE(CompileCommands_getCommand)                \
  USE(CompileCommands_dispose)                   \
  USE(CompileCommand_getDirectory)               \
  USE(CompileCommand_getNumArgs)                 \
  USE(CompileCommand_getArg)

// libclang's functions by their names without `clang_`.
struct LibClang {
#define UNFLAKE_MEMBER(name) decltype(&clang_##name) name = nullptr;
  UNFLAKE_LIBCLANG_FUNCTIONS(UNFLAKE_MEMBER)
#undef UNFLAKE_MEMBER
};

// Loaded when first needed: linked, it would make every command start 35 ms later.
Result<void> load_libclang();

// Only after load_libclang() has succeeded.
const LibClang& clang();

// A position in a file that is part of a translation unit.
struct Spot {
  std::string file;  // real path
  int line = 0;
  size_t offset = 0;
};

std::string take_text(CXString text);
std::string spelling(CXCursor cursor);
std::vector<CXCursor> children(CXCursor cursor);
std::vector<CXCursor> arguments(CXCursor call);
bool is_null(CXCursor cursor);
bool is_expression(CXCursor cursor);

// Of what a cursor refers to: the same for all that refer to it.
std::string identity(CXCursor declaration);

// Without references, const and aliases.
std::string type_name(CXCursor cursor);

// Where the characters are, in the body of a macro too.
Spot spelled_at(CXSourceLocation location);
// Where they would be if macros were functions.
Spot expanded_at(CXSourceLocation location);
// The argument of a macro where it is written, the body of one where it is used.
Spot place_in_file(CXSourceLocation location);
bool in_macro_body(CXCursor cursor);

// Where an expression is in its file; inside the body of a macro, where the macro is used.
struct SourceExtent {
  Spot begin, end;
};
SourceExtent extent_of(CXCursor cursor);

// The expressions among the children: no names of types and namespaces.
std::vector<CXCursor> operands(CXCursor cursor);

}  // namespace unflake
