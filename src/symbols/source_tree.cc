#include "symbols/source_tree.h"

#include <filesystem>

#include "util/base_name.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_entries = 100'000;

}  // namespace

const SourceTree::Files& SourceTree::files() const {
  if (files_) return *files_;
  files_.emplace();
  std::error_code failed;
  fs::recursive_directory_iterator at(root_, fs::directory_options::skip_permission_denied, failed);
  for (size_t i = 0; i < most_entries && !failed && at != fs::end(at); at.increment(failed), ++i) {
    const std::string path = at->path().string();
    std::error_code ignored;
    if (!at->is_directory(ignored))
      (*files_)[base_name(path)].push_back(path);
    else if (base_name(path).starts_with('.'))
      at.disable_recursion_pending();
  }
  return *files_;
}

const std::vector<std::string>& SourceTree::files_named(const std::string& name) const {
  static const std::vector<std::string> none;
  const auto found = files().find(name);
  return found == files().end() ? none : found->second;
}

bool SourceTree::has_match(const std::string& glob) const {
  for (const auto& [name, paths] : files())
    for (const std::string& path : paths)
      if (glob_match(glob, path) || glob_match(glob, path.substr(root_.size() + 1))) return true;
  return false;
}

}  // namespace unflake
