#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "model/study_report.h"

namespace unflake {

struct CommitChange {
  std::vector<std::string> paths;
  std::string diff;   // unified
  bool whole = true;  // false: the diff was too long to be kept
};

// What was done about a wait, from the words of a diff: any language, no parsing. A fix may be of
// several kinds; one that is of none, or that touches too much to be read, is hard to say.
std::vector<FixKind> fix_kinds(const CommitChange& change);

bool is_code_path(std::string_view path);

// By its path: in a folder that says so (test, tests, testing, spec, x_tests ...), or with a name
// that does (test_x, x_test, XTest, x.spec).
bool is_test_path(std::string_view path);

// Where a fix was made. Files that only people read do not count; any other file that is not code
// makes it `other`. `test_files` are known to hold tests whatever their names.
FixPlace fix_place(const std::vector<std::string>& paths,
                   const std::vector<std::string>& test_files);

}  // namespace unflake
