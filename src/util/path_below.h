#pragma once

#include <filesystem>
#include <string>

namespace unflake {

// The path as seen from the folder, by its words alone; empty when it is not in there.
inline std::string path_below(const std::string& path, const std::string& folder) {
  std::string name = std::filesystem::path(path).lexically_relative(folder).generic_string();
  return name.starts_with("..") ? "" : name;
}

}  // namespace unflake
