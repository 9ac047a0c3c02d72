#pragma once

#include <string>
#include <vector>

#include "util/result.h"

namespace unflake {

// A piece of a source file and its replacement; without an old text, something that is put in
// there.
struct SourceEdit {
  std::string file;
  int line = 0;  // of the literal, which may be elsewhere than the call
  size_t offset = 0;
  std::string old_text, new_text;
  std::string caution;  // what else changes with it, for people; empty when nothing does
};

struct NewSource {
  std::string file, text;
};

// A file's text with the edits in it. What is put in at the same place keeps its order.
Result<std::string> edited_text(const std::string& text, std::vector<SourceEdit> edits);

// A diff that `git apply` and `patch -p1` take, with file names relative to `root`.
Result<std::string> unified_diff(const std::vector<SourceEdit>& edits, const std::string& root,
                                 const std::vector<NewSource>& new_files = {});

}  // namespace unflake
