#pragma once

#include <filesystem>
#include <string>

namespace unflake {

// The part of a path after its last slash; all of it when there is none.
inline std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Of anything that has a file and a line. Folders differ between machines and build trees.
template <class Place, class OtherPlace>
bool is_same_line(const Place& a, const OtherPlace& b) {
  return a.line == b.line && base_name(a.file) == base_name(b.file);
}

// The path as seen from the folder, by the text alone; empty when it is not inside.
inline std::string path_below(const std::string& path, const std::string& folder) {
  std::string name = std::filesystem::path(path).lexically_relative(folder).generic_string();
  return name.starts_with("..") ? "" : name;
}

}  // namespace unflake
