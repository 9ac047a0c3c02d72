#include "history/fix_place.h"

#include <algorithm>
#include <array>

#include "util/lower_case.h"

namespace unflake {
namespace {

std::string_view name_in(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string ending_of(std::string_view path) {
  const std::string_view name = name_in(path);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? "" : lower_case(name.substr(dot + 1));
}

bool is_for_people(std::string_view path) {
  constexpr std::array endings{"md", "rst", "adoc", "txt"};
  const std::string ending = ending_of(path);
  if (lower_case(name_in(path)) == "cmakelists.txt") return false;
  const std::string name = lower_case(name_in(path));
  return std::ranges::find(endings, ending) != endings.end() || name == "changelog" ||
         name == "authors" || name == "news";
}

bool is_test_folder(std::string_view folder) {
  constexpr std::array names{
      "test", "tests", "testing",   "unittest",  "unittests",  "unit_test",        "unit_tests",
      "spec", "specs", "__tests__", "testsuite", "test_suite", "integration_tests"};
  const std::string low = lower_case(folder);
  return std::ranges::find(names, low) != names.end() || low.ends_with("_test") ||
         low.ends_with("_tests") || low.ends_with("-tests") || low.ends_with(".tests");
}

bool is_test_name(std::string_view stem) {
  const std::string low = lower_case(stem);
  for (const std::string_view end :
       {"_test", "_tests", "-test", ".test", "_unittest", "_spec", ".spec"})
    if (low.ends_with(end)) return true;
  return low.starts_with("test_") || low.starts_with("tst_") || stem.ends_with("Test") ||
         stem.ends_with("Tests") || low == "test" || low == "tests";
}

bool is_same_file(std::string_view path, std::string_view known) {
  if (path == known) return true;
  return known.size() > path.size() && known.ends_with(path) &&
         known[known.size() - path.size() - 1] == '/';
}

}  // namespace

bool is_code_path(std::string_view path) {
  constexpr std::array endings{"c",     "cc",    "cpp", "cxx", "c++", "h",    "hh",  "hpp", "hxx",
                               "inl",   "ipp",   "tpp", "m",   "mm",  "rs",   "go",  "py",  "java",
                               "kt",    "kts",   "cs",  "fs",  "js",  "jsx",  "ts",  "tsx", "mjs",
                               "swift", "scala", "rb",  "php", "pl",  "pm",   "sh",  "lua", "ex",
                               "exs",   "erl",   "hs",  "ml",  "clj", "dart", "zig", "d",   "cu"};
  return std::ranges::find(endings, ending_of(path)) != endings.end();
}

bool is_test_path(std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    if (is_test_folder(path.substr(0, slash))) return true;
    path.remove_prefix(slash + 1);
  }
  return is_test_name(path.substr(0, path.rfind('.')));
}

FixPlace fix_place(const std::vector<std::string>& paths,
                   const std::vector<std::string>& test_files) {
  bool test = false, source = false, other = false;
  for (const std::string& path : paths) {
    const bool known = std::ranges::any_of(
        test_files, [&](const std::string& file) { return is_same_file(path, file); });
    if (known || (is_code_path(path) && is_test_path(path)))
      test = true;
    else if (is_code_path(path))
      source = true;
    else if (!is_for_people(path))
      other = true;
  }
  if (other || (!test && !source)) return FixPlace::other;
  if (test && source) return FixPlace::both;
  return test ? FixPlace::test : FixPlace::source;
}

}  // namespace unflake
