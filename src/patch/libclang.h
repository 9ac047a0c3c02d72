#pragma once

#include <clang-c/CXCompilationDatabase.h>
#include <clang-c/Index.h>

#include "util/result.h"

namespace unflake {

#define UNFLAKE_LIBCLANG_FUNCTIONS(USE)       \
  USE(createIndexWithOptions)                 \
  USE(parseTranslationUnit2)                  \
  USE(reparseTranslationUnit)                 \
  USE(disposeTranslationUnit)                 \
  USE(defaultReparseOptions)                  \
  USE(getTranslationUnitCursor)               \
  USE(getNumDiagnostics)                      \
  USE(getDiagnostic)                          \
  USE(getDiagnosticSeverity)                  \
  USE(getDiagnosticSpelling)                  \
  USE(disposeDiagnostic)                      \
  USE(getCString)                             \
  USE(disposeString)                          \
  USE(visitChildren)                          \
  USE(getCursorKind)                          \
  USE(getCursorSpelling)                      \
  USE(getCursorType)                          \
  USE(getCursorReferenced)                    \
  USE(getCursorDefinition)                    \
  USE(getCursorSemanticParent)                \
  USE(getCursorUSR)                           \
  USE(getCursorLocation)                      \
  USE(getCursorExtent)                        \
  USE(getCursorBinaryOperatorKind)            \
  USE(getCursorUnaryOperatorKind)             \
  USE(Cursor_isNull)                          \
  USE(Cursor_getNumArguments)                 \
  USE(Cursor_getArgument)                     \
  USE(Cursor_getVarDeclInitializer)           \
  USE(isExpression)                           \
  USE(getRangeStart)                          \
  USE(getRangeEnd)                            \
  USE(getSpellingLocation)                    \
  USE(getExpansionLocation)                   \
  USE(getFileLocation)                        \
  USE(Location_isInSystemHeader)              \
  USE(File_tryGetRealPathName)                \
  USE(getFileName)                            \
  USE(getCanonicalType)                       \
  USE(getNonReferenceType)                    \
  USE(getUnqualifiedType)                     \
  USE(isConstQualifiedType)                   \
  USE(getTypeSpelling)                        \
  USE(CompilationDatabase_fromDirectory)      \
  USE(CompilationDatabase_dispose)            \
  USE(CompilationDatabase_getCompileCommands) \
  USE(CompileCommands_getSize)                \
  USE(CompileCommands_getCommand)             \
  USE(CompileCommands_dispose)                \
  USE(CompileCommand_getDirectory)            \
  USE(CompileCommand_getNumArgs)              \
  USE(CompileCommand_getArg)

// libclang's functions by their names without `clang_`.
struct LibClang {
#define UNFLAKE_MEMBER(name) decltype(&clang_##name) name = nullptr;
  UNFLAKE_LIBCLANG_FUNCTIONS(UNFLAKE_MEMBER)
#undef UNFLAKE_MEMBER
};

// Loaded when it is needed first: linked, it would make every command start 35 ms later.
Result<void> load_libclang();

// Only after load_libclang() has succeeded.
const LibClang& clang();

}  // namespace unflake
