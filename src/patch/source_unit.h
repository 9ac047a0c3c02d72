#pragma once

#include <functional>
#include <map>
#include <memory>
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
  bool is_usable() const { return is_usable_; }

  // The characters of a file of this unit, with the edit that is being tried.
  const std::string& text_of(const std::string& file) const;
  std::string piece(const Spot& begin, const Spot& end) const;

  // Reads everything anew as if the edit had been made; what `look` sees is gone when it returns.
  Result<void> try_edit(const SourceEdit& edit, const std::function<Result<void>()>& look);

 private:
  bool reparse(CXUnsavedFile* changed);
  std::vector<std::string> errors() const;

  std::string file_;
  CXTranslationUnit unit_;
  bool is_usable_ = true;  // libclang takes back a unit that it could not read again
  mutable std::map<std::string, std::string> texts_;
};

// The last few are kept: many literals of one file are asked for one after the other.
Result<std::shared_ptr<SourceUnit>> source_unit(const std::string& file,
                                                const std::string& compile_commands_folder);

}  // namespace unflake
