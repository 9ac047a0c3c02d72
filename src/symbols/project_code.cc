#include "symbols/project_code.h"

#include <algorithm>
#include <array>
#include <span>

#include "symbols/code_from.h"
#include "symbols/demangle.h"
#include "symbols/file_table.h"
#include "util/text.h"

namespace unflake {
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

// Below the root these hold what others wrote, by an old custom. A failure should be shown at the
// line of the test rather than inside of the test framework that was fetched into the build folder;
// who wants to act on such code says so with a project folder, which is longer and so decides.
constexpr std::array dependency_folders = {"/_deps/",           "/third_party/", "/third-party/",
                                           "/thirdparty/",      "/3rdparty/",    "/vendor/",
                                           "/vcpkg_installed/", "/external/"};

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

bool matches_any(std::string_view path, const std::vector<std::string>& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return glob_match(glob, path); });
}

std::string absolute(const std::string& entry, const std::string& root) {
  return normal_path(entry.starts_with('/') || root.empty() ? entry : root + "/" + entry);
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

ProjectCode::ProjectCode(const ProjectCodeRules& rules) {
  for (const char* prefix : image_prefixes) image_folders_.push_back({prefix, false, false});
  for (const char* prefix : source_prefixes) source_folders_.push_back({prefix, false, false});
  const std::string root = normal_path(rules.root);
  if (root.size() > 1) {
    image_folders_.push_back({root, true, true});
    source_folders_.push_back({root, true, true});
  }
  add(rules.project, root, true);
  add(rules.system, root, false);
}

void ProjectCode::add(const std::vector<std::string>& entries, const std::string& root,
                      bool is_project) {
  for (const std::string& entry : entries) {
    if (is_glob(entry)) {
      (is_project ? project_globs_ : system_globs_).push_back(entry);
      continue;
    }
    const Folder folder{absolute(entry, root), is_project, false};
    image_folders_.push_back(folder);
    source_folders_.push_back(folder);
  }
}

bool ProjectCode::decide(const std::vector<Folder>& folders, std::string_view path) const {
  if (matches_any(path, project_globs_)) return true;
  if (matches_any(path, system_globs_)) return false;
  const Folder* longest = nullptr;
  for (const Folder& folder : folders)
    if (is_below(path, folder.path) &&
        (longest == nullptr || folder.path.size() >= longest->path.size()))
      longest = &folder;
  const bool said = longest != nullptr && !longest->is_root;
  if (said) return longest->is_project;
  const std::string_view rest = longest == nullptr ? "" : path.substr(longest->path.size());
  return !contains_any(path, compiler_folders) && !contains_any(rest, dependency_folders);
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

namespace {

// Without debug information nobody knows whether a lambda was inlined into the function.
bool begins_with_any(std::string_view name, std::span<const char* const> beginnings) {
  return name.find("{lambda}") == std::string_view::npos &&
         std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace

bool is_system_function(std::string_view name) {
  constexpr std::array beginnings = {"std::",
                                     "__gnu_cxx::",
                                     "__gthread_",
                                     "__cxxabiv1::",
                                     "__cxa_",
                                     "__gxx_",
                                     "__cxx_",
                                     "_Unwind_",
                                     "__asan",
                                     "__tsan",
                                     "__msan",
                                     "__lsan",
                                     "__ubsan",
                                     "__sanitizer",
                                     "__sancov",
                                     "__interception",
                                     "__interceptor_",
                                     "___interceptor_",
                                     "execute_native_thread_routine"};
  return begins_with_any(name, beginnings);
}

bool is_framework_function(std::string_view name) {
  constexpr std::array beginnings = {
      "testing::", "Catch::", "doctest::", "boost::unit_test::", "boost::test_tools::"};
  return begins_with_any(name, beginnings);
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

std::vector<Extent> foreign_ranges(const Image& image) {
  std::vector<Extent> foreign;
  for (const Function& function : image.functions()) {
    if (!function.file.empty()) continue;
    const std::string name = qualified_name(function.name);
    const bool unknown =
        image.has_debug_information() && !is_system_function(name) && !has_lines(image, function);
    if (is_framework_function(name) || unknown) foreign.push_back({function.start, function.size});
  }
  return merge_extents(std::move(foreign));
}

}  // namespace unflake
