#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "patch/cursor.h"
#include "patch/time_literal.h"

namespace unflake {

// A source file as the compiler sees it, errors in it notwithstanding.
class SourceUnit {
 public:
  SourceUnit(std::string file, std::string text, CXTranslationUnit unit);
  SourceUnit(const SourceUnit&) = delete;
  SourceUnit& operator=(const SourceUnit&) = delete;
  ~SourceUnit();

  const std::string& file() const { return file_; }  // real path
  CXCursor root() const;
  // libclang takes back a unit that it could not read again.
  bool is_usable() const { return is_usable_; }

  // Of the compiler, first one first.
  std::vector<std::string> errors() const;

  // The characters of a file of this unit, with the edit that is being tried.
  const std::string& text_of(const std::string& file) const;
  std::string piece(const Spot& begin, const Spot& end) const;

  // Reads everything anew as if the edit had been made; all cursors become invalid. `restore` takes
  // it back. An edit with which there are more errors than before is refused.
  Result<void> try_edit(const SourceEdit& edit);
  void restore();

 private:
  bool reparse(CXUnsavedFile* changed);

  std::string file_;
  CXTranslationUnit unit_;
  bool is_usable_ = true;
  mutable std::map<std::string, std::string> texts_;
  std::optional<std::pair<std::string, std::string>> original_;  // of the file with a tried edit
};

// The last few are kept: many literals of one file are asked for one after the other.
Result<std::shared_ptr<SourceUnit>> source_unit(const std::string& file,
                                                const std::string& compile_commands_folder);

}  // namespace unflake
