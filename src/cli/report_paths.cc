#include "cli/report_paths.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "suite/ctest.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr int most_levels_to_build_folder = 8;

std::vector<std::string> matches_of(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

// Folders that cannot be read are passed over, as `find` does.
std::vector<std::string> reports_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                      failed);
  for (; !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code ignored;
    if (at->path().extension() == ".xml" && at->is_regular_file(ignored))
      paths.push_back(at->path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

class Paths {
 public:
  Result<void> add(const std::string& word) {
    std::error_code ignored;
    if (word == "-" || (fs::exists(word, ignored) && !fs::is_directory(word, ignored)))
      return take(word, false), Result<void>();
    const bool is_folder = fs::is_directory(word, ignored);
    const auto paths = is_folder ? reports_below(word) : matches_of(word);
    if (paths.empty())
      return usage_error(fmt::format("there is no report '{}'", printable(word)), "",
                         "name XML files, folders with such, or `-` for standard input");
    for (const std::string& path : paths) take(path, is_folder);
    return {};
  }

  std::vector<ReportPath> all;

 private:
  void take(const std::string& path, bool was_found) {
    std::error_code ignored;
    const std::string real = fs::weakly_canonical(path, ignored).string();
    if (known_.insert(path == "-" ? path : real).second) all.push_back({path, was_found});
  }
  std::set<std::string> known_;
};

}  // namespace

Result<std::vector<ReportPath>> report_paths(const std::vector<std::string>& words) {
  Paths paths;
  for (const std::string& word : words)
    if (const auto added = paths.add(word); !added) return added.error();
  return std::move(paths.all);
}

std::string cmake_project_around(const std::string& path) {
  std::error_code failed;
  fs::path folder = fs::absolute(path, failed).lexically_normal().parent_path();
  for (int i = 0; i < most_levels_to_build_folder && folder.has_relative_path(); ++i) {
    if (fs::exists(folder / "CMakeCache.txt", failed)) return ctest_target_name(folder.string());
    folder = folder.parent_path();
  }
  return "";
}

}  // namespace unflake
