#include "symbols/project_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "symbols/dwarf.h"
#include "util/paths.h"
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

namespace {

constexpr std::array image_prefixes = {
    "/lib",       "/lib32",      "/lib64",       "/libx32",        "/usr/lib",         "/usr/lib32",
    "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/local/lib", "/usr/local/lib64", "/bin",
    "/sbin",      "/usr/bin",    "/usr/sbin",    "/nix/store",     "/gnu/store",       "/snap",
    "/run/host",
};

constexpr std::array source_prefixes = {
    "/usr/include", "/usr/local/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32",
    "/usr/share",   "/usr/src",           "/lib",     "/nix/store", "/gnu/store",
};

// Where a compiler keeps its headers, whatever folder it was installed to.
constexpr std::array compiler_folders = {"/include/c++/", "/lib/gcc/", "/lib/clang/", "/lib64/gcc/",
                                         "/lib64/clang/"};

// By convention, these hold what others wrote below the root. A failure should be shown at the
// line of the test rather than inside the test framework that was fetched into the build folder;
// whoever wants to act on such code says so with a project folder, which is longer and so decides.
constexpr std::array dependency_folders = {
    "/_deps/",  "/third_party/",     "/third-party/", "/thirdparty/", "/3rdparty/",
    "/vendor/", "/vcpkg_installed/", "/external/",    "/externals/",  "/extern/",
    "/deps/",   "/subprojects/",     "/bundled/"};

// Test frameworks that are one file are kept beside the tests.
constexpr std::array framework_files = {
    "catch.hpp", "catch_all.hpp", "catch_amalgamated.hpp", "catch_amalgamated.cpp",
    "doctest.h", "gtest-all.cc",  "gmock-gtest-all.cc",    "gmock-all.cc"};

bool is_framework_file(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::ranges::find(framework_files, name) != framework_files.end();
}

bool is_below(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

template <class Parts>
bool contains_any(std::string_view path, const Parts& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return path.find(part) != std::string_view::npos;
  });
}

// What a glob says before its first wildcard, without the name that the wildcard is part of.
std::string folder_of(const std::string& glob) {
  return glob.substr(0, glob.rfind('/', glob.find_first_of("*?")));
}

bool is_padding(std::span<const Function> functions, uint64_t start, uint64_t end) {
  const auto next = std::partition_point(
      functions.begin(), functions.end(),
      [&](const Function& function) { return function.start + function.size <= start; });
  return next == functions.end() || next->start >= end;
}

std::vector<Extent> join_over_padding(const std::vector<Extent>& extents,
                                      std::span<const Function> functions) {
  std::vector<Extent> joined;
  for (const Extent& extent : extents) {
    Extent* last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && is_padding(functions, last->start + last->size, extent.start))
      last->size = extent.start + extent.size - last->start;
    else
      joined.push_back(extent);
  }
  return joined;
}

}  // namespace

ProjectCode::ProjectCode(const ProjectCodeRules& rules) : root_(normal_path(rules.root)) {
  for (const char* prefix : image_prefixes) image_folders_.push_back({prefix, false, false});
  for (const char* prefix : source_prefixes) source_folders_.push_back({prefix, false, false});
  if (root_.size() <= 1) root_.clear();
  if (!root_.empty()) {
    image_folders_.push_back({root_, true, true});
    source_folders_.push_back({root_, true, true});
    tree_ = std::make_shared<SourceTree>(root_);
  }
  add(rules.project, true);
  add(rules.system, false);
}

void ProjectCode::add(const std::vector<std::string>& entries, bool is_project) {
  for (const std::string& text : entries) {
    const Entry entry{text, normal_path(text), is_project, is_glob(text)};
    entries_.push_back(entry);
    if (entry.is_glob || (entry.is_relative() && root_.empty())) continue;
    const std::string path = entry.is_relative() ? root_ + "/" + entry.pattern : entry.pattern;
    image_folders_.push_back({path, is_project, false});
    source_folders_.push_back({path, is_project, false});
  }
}

bool ProjectCode::Entry::covers(std::string_view path) const {
  return is_glob ? glob_match(pattern, path) : is_below(path, pattern);
}

bool ProjectCode::matches(const Entry& entry, std::string_view path, bool elsewhere) const {
  if (entry.covers(path)) return true;
  if (!entry.is_relative()) return false;
  if (!root_.empty() && is_below(path, root_) && path.size() > root_.size())
    return entry.covers(path.substr(root_.size() + 1));
  for (size_t slash = path.find('/'); elsewhere && slash != std::string_view::npos;
       slash = path.find('/', slash + 1))
    if (entry.covers(path.substr(slash + 1))) return true;
  return false;
}

// Any matching glob decides, those of the project first; of folders the longest, and only where no
// folder of this machine contains the path.
const ProjectCode::Entry* ProjectCode::entry_for(std::string_view path, bool elsewhere) const {
  const Entry* longest = nullptr;
  for (const Entry& entry : entries_) {
    if (!(entry.is_glob || elsewhere) || !matches(entry, path, elsewhere)) continue;
    if (entry.is_glob) return &entry;
    if (longest == nullptr || entry.pattern.size() >= longest->pattern.size()) longest = &entry;
  }
  return longest;
}

bool ProjectCode::decide(const std::vector<Folder>& folders, std::string_view path) const {
  const Folder* longest = nullptr;
  for (const Folder& folder : folders)
    if (is_below(path, folder.path) &&
        (longest == nullptr || folder.path.size() >= longest->path.size()))
      longest = &folder;
  const bool of_compiler = contains_any(path, compiler_folders);
  const bool elsewhere = longest == nullptr && !of_compiler;
  if (const Entry* entry = entry_for(path, elsewhere)) return entry->is_project;
  const bool said = longest != nullptr && !longest->is_root;
  if (said) return longest->is_project;
  const std::string_view rest = longest == nullptr ? "" : path.substr(longest->path.size());
  return !of_compiler && !contains_any(rest, dependency_folders) && !is_framework_file(path);
}

bool ProjectCode::is_project_image(std::string_view path) const {
  const bool is_file = path.find('/') != std::string_view::npos;  // [vdso] is none
  return is_file && decide(image_folders_, path);
}

bool ProjectCode::is_project_file(std::string_view path) const {
  const bool is_file = !path.empty() && !path.starts_with('<');  // <built-in> is none
  return is_file && decide(source_folders_, path);
}

std::vector<std::string> ProjectCode::system_prefixes() const {
  std::vector<std::string> prefixes;
  for (const Folder& folder : image_folders_)
    if (!folder.is_project) prefixes.push_back(folder.path);
  return prefixes;
}

bool ProjectCode::has_source(const std::string& base_name) const {
  return tree_ && std::ranges::any_of(tree_->files_named(base_name), [&](const std::string& path) {
           return is_project_file(path);
         });
}

bool ProjectCode::exists(const Entry& entry) const {
  std::error_code ignored;
  const std::string folder = entry.is_glob ? folder_of(entry.pattern) : entry.pattern;
  if (!entry.is_relative()) return std::filesystem::exists(folder, ignored);
  if (entry.is_glob) return tree_ && tree_->has_match(entry.pattern);
  return !root_.empty() && std::filesystem::exists(root_ + "/" + folder, ignored);
}

std::vector<std::string> ProjectCode::unmatched(const std::vector<std::string>& paths) const {
  const auto is_elsewhere = [&](const std::string& path) {
    return std::ranges::none_of(source_folders_,
                                [&](const Folder& folder) { return is_below(path, folder.path); });
  };
  std::vector<std::string> found;
  for (const Entry& entry : entries_)
    if (std::ranges::none_of(
            paths,
            [&](const std::string& path) { return matches(entry, path, is_elsewhere(path)); }) &&
        !exists(entry))
      found.push_back(
          fmt::format("[code] {}: {}", entry.is_project ? "project" : "system", entry.text));
  return found;
}

namespace {

// Without debug information nobody knows whether a lambda was inlined into the function.
bool begins_with_any(std::string_view name, std::span<const char* const> beginnings) {
  return name.find("{lambda}") == std::string_view::npos &&
         std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace

bool is_system_function(std::string_view name) {
  constexpr std::array beginnings = {
      "std::",          "__gnu_cxx::",     "__gthread_",    "__cxxabiv1::",
      "__cxa_",         "__gxx_",          "__cxx_",        "_Unwind_",
      "__asan",         "__tsan",          "__msan",        "__lsan",
      "__ubsan",        "__sanitizer",     "__sancov",      "__interception",
      "__interceptor_", "___interceptor_", "__libc_start_", "execute_native_thread_routine"};
  // What every program begins and ends with, and no compiler describes.
  constexpr std::array start_files = {"_start",
                                      "_init",
                                      "_fini",
                                      "frame_dummy",
                                      "register_tm_clones",
                                      "deregister_tm_clones",
                                      "__do_global_dtors_aux",
                                      "__libc_csu_init",
                                      "__libc_csu_fini"};
  return begins_with_any(name, beginnings) ||
         std::ranges::find(start_files, name) != start_files.end();
}

bool is_framework_function(std::string_view name) {
  constexpr std::array beginnings = {
      "testing::", "Catch::", "doctest::", "boost::unit_test::", "boost::test_tools::"};
  return begins_with_any(name, beginnings);
}

bool is_test_function(std::string_view name) {
  constexpr std::array ends = {"::TestBody", "::test_method"};
  constexpr std::array parts = {"CATCH2_INTERNAL_TEST_", "C_A_T_C_H_T_E_S_T_",
                                "C_A_T_C_H____T_E_S_T_", "DOCTEST_ANON_FUNC_"};
  return !is_framework_function(name) &&
         (contains_any(name, parts) ||
          std::ranges::any_of(ends, [&](const char* end) { return name.ends_with(end); }));
}

const Frame* first_project_frame(const std::vector<Frame>& frames, const ProjectCode& policy) {
  for (const Frame& frame : frames) {
    const bool is_project = frame.file.empty() ? !is_system_function(frame.function) &&
                                                     !is_framework_function(frame.function)
                                               : policy.is_project_file(frame.file);
    if (is_project) return &frame;
  }
  return nullptr;
}

std::vector<Extent> skip_ranges(const Image& image, const ProjectCode& policy) {
  std::vector<Extent> skipped =
      image.code_from([&](const std::string& file) { return !policy.is_project_file(file); });
  for (const Function& function : image.functions())
    if (function.file.empty() && is_system_function(qualified_name(function.name)))
      skipped.push_back({function.start, function.size});
  return join_over_padding(merge_extents(std::move(skipped)), image.functions());
}

namespace {

bool has_lines(const Image& image, const Function& function) {
  const auto lines = image.lines();
  const auto row = std::ranges::lower_bound(lines, function.start, {}, &LineRow::address);
  return row != lines.end() && row->address < function.start + function.size;
}

}  // namespace

std::vector<const BareUnit*> bare_project_units(const Image& image, const ProjectCode& policy) {
  std::vector<const BareUnit*> units;
  const auto name_of = [&](uint32_t number) {
    return qualified_name(image.functions()[number].name);
  };
  const auto is_others = [&](uint32_t number) {
    const std::string name = name_of(number);
    return is_system_function(name) || is_framework_function(name);
  };
  for (const BareUnit& unit : image.bare_units()) {
    const bool has_tests = std::ranges::any_of(
        unit.functions, [&](uint32_t number) { return is_test_function(name_of(number)); });
    const bool is_library = std::ranges::all_of(unit.functions, is_others) &&
                            std::ranges::all_of(unit.perhaps, is_others);
    if (has_tests || (!is_library && policy.has_source(base_name(unit.source))))
      units.push_back(&unit);
  }
  return units;
}

std::vector<Extent> foreign_ranges(const Image& image, const ProjectCode& policy) {
  std::vector<bool> is_own(image.functions().size());
  for (const BareUnit* unit : bare_project_units(image, policy))
    for (const auto* numbers : {&unit->functions, &unit->perhaps})
      for (const uint32_t number : *numbers) is_own[number] = true;
  std::vector<Extent> foreign;
  for (size_t i = 0; i < image.functions().size(); ++i) {
    const Function& function = image.functions()[i];
    if (!function.file.empty()) continue;
    const std::string name = qualified_name(function.name);
    const bool unknown = image.has_debug_information() && !is_own[i] && !is_system_function(name) &&
                         !has_lines(image, function);
    if (is_framework_function(name) || unknown) foreign.push_back({function.start, function.size});
  }
  return merge_extents(std::move(foreign));
}

}  // namespace unflake
