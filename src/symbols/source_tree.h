#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace unflake {

// The files below a folder, hidden folders left out. Looked at when first asked for, and up to a
// bounded number: a project's root may be a home folder. Not for several threads at once.
class SourceTree {
 public:
  explicit SourceTree(std::string root) : root_(std::move(root)) {}

  // Absolute paths of the files of this name.
  const std::vector<std::string>& files_named(const std::string& base_name) const;
  // Whether any path, whole or relative to the root, matches the glob.
  bool has_match(const std::string& glob) const;

 private:
  using Files = std::map<std::string, std::vector<std::string>>;  // by base name
  const Files& files() const;

  std::string root_;
  mutable std::optional<Files> files_;
};

}  // namespace unflake
