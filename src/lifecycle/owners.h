#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "util/result.h"

namespace unflake {

// Who is responsible for which files, according to CODEOWNERS files of GitHub and GitLab.
class Owners {
 public:
  // Lines that cannot be read are left out, as the two services do.
  static Owners parse(std::string_view text);

  // `path` is relative to the repository's root. Of several rules that match the last one of each
  // section decides; without sections that is the last one. None: empty.
  std::vector<std::string> of(std::string_view path) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    std::string pattern;
    std::vector<std::string> owners;
    size_t section = 0;
    bool excludes = false;  // GitLab's `!`: what it matches has no owner in this section
  };
  static bool matches(const Rule& rule, std::string_view path);

  std::vector<Rule> rules_;
};

// From `CODEOWNERS`, `.github/`, `.gitlab/` or `docs/CODEOWNERS`, the first that exists; none has
// no owners.
Owners load_owners(const std::string& project_root);

// A file as a suite names it, absolute or relative to some folder, as a path of the repository;
// empty when it is outside.
std::string repository_path(const std::string& file, const std::string& project_root);

}  // namespace unflake
