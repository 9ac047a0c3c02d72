#include "cli/report_paths.h"

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "suite/ctest.h"
#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr int most_levels_to_build_folder = 8;
constexpr size_t most_kinds = 4, longest_kind = 20;

std::vector<std::string> matches_of(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

struct FolderContents {
  std::vector<std::string> reports;      // files that may be such
  std::map<std::string, size_t> others;  // how many files of which kind: ".json"
  std::error_code failed;                // the folder itself cannot be read
};

// Folders below that cannot be read are passed over, as `find` does.
FolderContents look_into(const std::string& folder) {
  FolderContents contents;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                      contents.failed);
  if (!contents.failed && ::access(folder.c_str(), R_OK | X_OK) != 0)
    contents.failed = std::error_code(errno, std::generic_category());
  std::error_code broken = contents.failed;
  for (; !broken && at != fs::recursive_directory_iterator(); at.increment(broken)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    if (at->path().extension() == ".xml")
      contents.reports.push_back(at->path().string());
    else
      ++contents.others[at->path().extension().string()];
  }
  std::ranges::sort(contents.reports);
  return contents;
}

// "7 .json, 2 .log, 3 others": what there is most of first.
std::string kinds_text(const std::map<std::string, size_t>& kinds) {
  std::vector<std::pair<size_t, std::string>> order;
  size_t rest = 0;
  for (const auto& [kind, files] : kinds)
    if (kind.empty())
      rest += files;
    else
      order.emplace_back(files, kind);
  std::ranges::stable_sort(order, std::ranges::greater(), &std::pair<size_t, std::string>::first);
  std::vector<std::string> parts;
  for (const auto& [files, kind] : order)
    if (parts.size() < most_kinds)
      parts.push_back(fmt::format("{} {}", files, printable(shorten(kind, longest_kind))));
    else
      rest += files;
  if (rest > 0)
    parts.push_back(parts.empty() ? fmt::format("{} without an ending", rest)
                                  : fmt::format("{} other", rest));
  return join(parts, ", ");
}

Error no_reports_in(const std::string& folder, const FolderContents& contents) {
  if (contents.failed)
    return usage_error(fmt::format("the folder '{}' cannot be read: {}", printable(folder),
                                   contents.failed.message()),
                       "", "check its rights");
  const std::string seen =
      contents.others.empty() ? "has no files" : "has other files: " + kinds_text(contents.others);
  return usage_error(
      fmt::format("no file in the folder '{}' or below it ends in .xml; it {}", printable(folder),
                  seen),
      "",
      "let the test runner write JUnit XML there (GoogleTest: --gtest_output=xml:FOLDER/, CTest: "
      "--output-junit FILE, pytest: --junitxml FILE), or name the folder that has it");
}

class Paths {
 public:
  Result<void> add(const std::string& word) {
    std::error_code ignored;
    if (word == "-" || (fs::exists(word, ignored) && !fs::is_directory(word, ignored)))
      return take(word, false), Result<void>();
    if (fs::is_directory(word, ignored)) return add_folder(word);
    const auto paths = matches_of(word);
    if (paths.empty())
      return usage_error(fmt::format("there is no report '{}'", printable(word)), "",
                         "name XML files, folders with such, or `-` for standard input");
    for (const std::string& path : paths) take(path, false);
    return {};
  }

  std::vector<ReportPath> all;

 private:
  Result<void> add_folder(const std::string& folder) {
    const FolderContents contents = look_into(folder);
    if (contents.reports.empty()) return no_reports_in(folder, contents);
    for (const std::string& path : contents.reports) take(path, true);
    return {};
  }

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
