#pragma once

#include <string>

namespace unflake {

// Where a source is that a build knew by this path: there, or below `root` when it was built in
// another folder or machine, by as much of the path's end as is the same here, a folder at least.
// Empty: nowhere.
std::string find_source(const std::string& path, const std::string& root);

}  // namespace unflake
