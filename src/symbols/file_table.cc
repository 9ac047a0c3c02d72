#include "symbols/file_table.h"

#include <vector>

namespace unflake {

std::string normal_path(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..")
      parts.pop_back();
    else if (part != ".." || !absolute)
      parts.push_back(part);
  }
  std::string normal = absolute ? "/" : "";
  for (const std::string_view part : parts) {
    if (!normal.empty() && !normal.ends_with('/')) normal += '/';
    normal += part;
  }
  return normal;
}

uint32_t FileTable::number_of(const char* raw) {
  if (const auto known = by_pointer_.find(raw); known != by_pointer_.end()) return known->second;
  const auto [place, is_new] = by_name_.emplace(normal_path(raw), names_.size());
  if (is_new) names_.push_back(place->first);
  by_pointer_.emplace(raw, place->second);
  return place->second;
}

}  // namespace unflake
