#pragma once

#include <string>
#include <vector>

#include "report/study.h"

namespace unflake {

struct CommitChange {
  std::vector<std::string> paths;
  std::string diff;   // unified
  bool whole = true;  // false: the diff was too long to be kept
};

// What was done about a wait, from the words of a diff: any language, no parsing. A fix may be of
// several kinds; one that is of none, or that touches too much to be read, is hard to say.
std::vector<FixKind> fix_kinds(const CommitChange& change);

}  // namespace unflake
