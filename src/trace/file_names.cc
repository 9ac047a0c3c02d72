#include "trace/file_names.h"

#include <algorithm>
#include <filesystem>

#include "util/base_name.h"

namespace unflake {
namespace {

std::string clean(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

bool ends_with_name(const std::string& path, const std::string& suffix) {
  return path.ends_with(suffix) &&
         (path.size() == suffix.size() || path[path.size() - suffix.size() - 1] == '/');
}

}  // namespace

void FileNames::add(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const std::string cleaned = clean(path);
    by_base_[base_name(cleaned)].insert(cleaned);
  }
}

bool FileNames::is_taken(const std::string& suffix, const std::string& by_other_than) const {
  if (taken_.contains(suffix)) return true;
  const auto same_base = by_base_.find(base_name(suffix));
  return same_base != by_base_.end() &&
         std::ranges::any_of(same_base->second, [&](const std::string& other) {
           return other != by_other_than && ends_with_name(other, suffix);
         });
}

const std::string& FileNames::short_name(const std::string& path) {
  const std::string cleaned = clean(path);
  const auto known = given_.find(cleaned);
  if (known != given_.end()) return known->second;
  add({cleaned});
  std::string name = base_name(cleaned);
  while (name.size() < cleaned.size() && is_taken(name, cleaned)) {
    const size_t end = cleaned.size() - name.size() - 1;  // of what is left of the name's slash
    const size_t slash = end == 0 ? std::string::npos : cleaned.rfind('/', end - 1);
    name = slash == std::string::npos ? cleaned : cleaned.substr(slash + 1);
  }
  taken_.insert(name);
  return given_.emplace(cleaned, std::move(name)).first->second;
}

}  // namespace unflake
