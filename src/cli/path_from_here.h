#pragma once

#include <filesystem>
#include <string>

namespace unflake {

// What people copy from a terminal should be short.
inline std::string path_from_here(const std::string& path) {
  std::error_code failed;
  const std::string here = std::filesystem::current_path(failed).string() + "/";
  return !failed && path.starts_with(here) ? path.substr(here.size()) : path;
}

}  // namespace unflake
