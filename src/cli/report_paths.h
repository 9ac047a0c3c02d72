#pragma once

#include <string>
#include <vector>

#include "util/result.h"

namespace unflake {

// A report that the user named, or one that was found in a folder that the user named.
struct ReportPath {
  std::string path;  // "-": standard input
  bool was_found = false;
};

// Files, folders (every .xml below) and patterns, in order; each file once.
Result<std::vector<ReportPath>> report_paths(const std::vector<std::string>& words);

// The CMake project whose build folder the file is in; empty: none.
std::string cmake_project_around(const std::string& path);

}  // namespace unflake
