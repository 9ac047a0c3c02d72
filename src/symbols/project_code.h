#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/image.h"

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

// What a user can say about it. Each entry is a folder or a glob, relative to the root unless it is
// absolute. Of files that were compiled elsewhere, in a container or under shortened names, a
// relative entry may match any end of the path that begins at a folder.
struct ProjectCodeRules {
  std::string root;  // of the project; may be empty
  std::vector<std::string> project;
  std::vector<std::string> system;
};

// Decides what is the user's own code, which can be acted on and is worth naming, and what the
// user only builds upon. The longest folder that contains a path decides. What no rule covers is
// project code: tests are built in all sorts of places.
class ProjectCode {
 public:
  explicit ProjectCode(const ProjectCodeRules& rules);

  // By the path of an executable or library. The test's own executable is project code wherever it
  // is; the caller knows which one that is.
  bool is_project_image(std::string_view path) const;
  // By the path of a source file as Frame and Function give it.
  bool is_project_file(std::string_view path) const;

  // The folders whose images are not project code.
  std::vector<std::string> system_prefixes() const;

  // Whether the project's own folders hold a source file of this name.
  bool has_source(const std::string& base_name) const;

  // The user's entries, written `[code] system: src/gen/*`, that match none of these paths and
  // nothing below the root either: another program of the project may need them.
  std::vector<std::string> unmatched(const std::vector<std::string>& paths) const;

 private:
  struct Folder {
    std::string path;
    bool is_project = false;
    bool is_root = false;
  };
  struct Entry {
    std::string text;  // as the user wrote it
    std::string pattern;
    bool is_project = false;
    bool is_glob = false;

    bool is_relative() const { return !pattern.starts_with('/'); }
    bool covers(std::string_view path) const;
  };
  void add(const std::vector<std::string>& entries, bool is_project);
  bool decide(const std::vector<Folder>& folders, std::string_view path) const;
  bool matches(const Entry& entry, std::string_view path, bool elsewhere) const;
  const Entry* entry_for(std::string_view path, bool elsewhere) const;
  bool exists(const Entry& entry) const;

  std::string root_;
  std::vector<Folder> image_folders_;
  std::vector<Folder> source_folders_;
  std::vector<Entry> entries_;
  std::shared_ptr<const SourceTree> tree_;
};

// The standard library and the sanitizers' run-times by the names of their functions, for when they
// are linked in without debug information.
bool is_system_function(std::string_view qualified_name);
bool is_framework_function(std::string_view qualified_name);
// What the macros of the frameworks make of a test's body.
bool is_test_function(std::string_view qualified_name);

// The first of the frames at an address, innermost first, that is in project code: where a
// lock_guard was inlined into push, push. Null when none is.
const Frame* first_project_frame(const std::vector<Frame>& frames, const ProjectCode& policy);

// The code of a project image that works on behalf of its caller: what templates of system headers
// became, the standard library. A function of a template that has project code inlined into it is
// project code there.
std::vector<Extent> skip_ranges(const Image& image, const ProjectCode& policy);

// The files of the project that were compiled without debug information, while other code of the
// image has some: their source is in the project, or they define tests.
std::vector<const BareUnit*> bare_project_units(const Image& image, const ProjectCode& policy);

// The code of a project image that others compiled and that only works for itself: a test
// framework, and what came from archives without debug information when the rest of the image has
// some.
std::vector<Extent> foreign_ranges(const Image& image, const ProjectCode& policy);

}  // namespace unflake
