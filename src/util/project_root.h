#pragma once

#include <string>

namespace unflake {

// The folder that a user thinks of as the project: the nearest one at or above the current folder
// that holds `.unflake` or `.git`, else the current one. Empty when the current folder is gone.
std::string project_root();

// The same, as seen from another folder.
std::string project_root_of(const std::string& folder);

}  // namespace unflake
