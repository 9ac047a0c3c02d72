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

// Where a source is that a build knew by this path: there, or below `root` when it was built in
// another folder or machine, by as much of the path's end as matches here, at least a folder.
// Empty: nowhere.
std::string find_source(const std::string& path, const std::string& root);

// The folder that a user thinks of as the project: the nearest one at or above the current folder
// that holds `.unflake` or `.git`, else the current one. Empty when the current folder is gone.
std::string project_root();

// The same, as seen from another folder.
std::string project_root_of(const std::string& folder);

}  // namespace unflake
