#include "util/paths.h"

#include <filesystem>

namespace unflake {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

std::string find_source(const std::string& path, const std::string& root) {
  if (path.empty()) return "";
  const fs::path known(path);
  // Relative to the root first: a copy of the project elsewhere is not the one that we are in.
  for (const fs::path& place : {root / known, known})
    if (is_file(place)) return place.string();
  fs::path end = known.lexically_normal().relative_path();
  while (end.has_parent_path()) {
    if (*end.begin() != ".." && is_file(root / end)) return (root / end).string();
    end = end.lexically_relative(*end.begin());
  }
  return "";
}

namespace fs = std::filesystem;

std::string project_root() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  return failed ? "" : project_root_of(here.string());
}

std::string project_root_of(const std::string& folder) {
  std::error_code ignored;
  for (fs::path above = folder; !above.empty(); above = above.parent_path()) {
    if (fs::exists(above / ".unflake", ignored) || fs::exists(above / ".git", ignored))
      return above.string();
    if (above == above.parent_path()) break;
  }
  return folder;
}

}  // namespace unflake
