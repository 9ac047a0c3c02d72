#include "util/find_source.h"

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
  for (const fs::path& place : {known, root / known})
    if (is_file(place)) return place.string();
  fs::path end = known.lexically_normal().relative_path();
  while (end.has_parent_path()) {
    if (*end.begin() != ".." && is_file(root / end)) return (root / end).string();
    end = end.lexically_relative(*end.begin());
  }
  return "";
}

}  // namespace unflake
