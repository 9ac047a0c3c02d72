#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "patch/literals/time_literal.h"
#include "patch/source/libclang.h"
#include "patch/source/unified_diff.h"
#include "util/result.h"

namespace unflake {

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
