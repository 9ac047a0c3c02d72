#pragma once

#include <clang-c/CXCompilationDatabase.h>
#include <clang-c/Index.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "patch/literals/time_literal.h"
#include "patch/source/unified_diff.h"
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
  USE(Cursor_getStorageClass)                    \
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

// A whole source file; one over 16 MiB is refused.
Result<std::string> read_source(const std::string& path);

// Where each line begins.
std::vector<size_t> line_starts(std::string_view text);

// Absolute and without links where the file exists, else as it was given.
std::string real_path(const std::string& path);

// How a file is compiled, as far as it matters for reading it. The commands come from
// compile_commands.json in the given folder; without one, from the nearest at or above the file,
// or in folders there whose names begin with "build", "cmake-build" or "out". A header takes the
// flags of the file that is most like it. Without any, C++20 and the folders above as includes.
Result<std::vector<std::string>> compile_flags(const std::string& file, const std::string& folder);

// The folder whose compile_commands.json would be read for the file; empty: there is none.
std::string compile_commands_of(const std::string& file, const std::string& folder);

// The folder with one that a program was built in: its own, or one above; empty: there is none.
std::string compile_commands_above(const std::string& program);

// The files that it compiles, as it names them.
std::vector<std::string> compiled_files(const std::string& folder);

// A source file as the compiler sees it, despite errors in it.
class SourceUnit {
 public:
  SourceUnit(std::string file, std::string text, CXTranslationUnit unit);
  SourceUnit(const SourceUnit&) = delete;
  SourceUnit& operator=(const SourceUnit&) = delete;
  ~SourceUnit();

  const std::string& file() const { return file_; }  // real path
  CXCursor root() const;
  // Of the root's children, declarations and macros, those in this file.
  const std::vector<CXCursor>& top_level(const std::string& file) const;
  // libclang frees a unit that it could not reparse.
  bool is_usable() const { return is_usable_; }

  // Of the compiler, first one first.
  std::vector<std::string> errors() const;

  // The characters of a file of this unit, with the edit that is being tried.
  const std::string& text_of(const std::string& file) const;
  std::string piece(const Spot& begin, const Spot& end) const;

  // Reparses everything as if the edits had been made; all cursors become invalid. `restore` takes
  // them back. Edits that cause more errors than before are refused.
  Result<void> try_edit(const SourceEdit& edit) { return try_edits({edit}); }
  Result<void> try_edits(const std::vector<SourceEdit>& edits);
  void restore();

 private:
  bool reparse(std::vector<CXUnsavedFile> changed);
  void take_texts_back();
  Result<void> change_texts(const std::vector<SourceEdit>& edits);

  std::string file_;
  CXTranslationUnit unit_;
  bool is_usable_ = true;
  mutable std::map<std::string, std::string> texts_;
  mutable std::map<std::string, std::vector<CXCursor>> top_level_;  // as it is parsed now
  std::map<std::string, std::string> originals_;                    // of the files with tried edits
  std::optional<size_t> own_errors_;                                // without edits
};

// The last few are kept: many literals of one file are asked for in a row.
Result<std::shared_ptr<SourceUnit>> source_unit(const std::string& file,
                                                const std::string& compile_commands_folder);

}  // namespace unflake
