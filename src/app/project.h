#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/events.h"
#include "study/study.h"
#include "suite/adapter.h"

namespace unflake {

// What people copy from a terminal should be short.
inline std::string path_from_here(const std::string& path) {
  std::error_code failed;
  const std::string here = std::filesystem::current_path(failed).string() + "/";
  return !failed && path.starts_with(here) ? path.substr(here.size()) : path;
}

// The folder that a user thinks of as the project: the nearest one above that holds `.unflake` or
// `.git`, or else the current one.
struct Project {
  std::string root;

  std::string path(const std::string& name) const { return root + "/.unflake/" + name; }
};

// An error when the current folder is gone.
Result<Project> find_project();

// Makes `.unflake` on first use, with the files in it that do not belong in version control
// kept out of it. Anything that goes wrong here shows when the first file is written.
void make_folder(const Project& project);

// What the repository is called where it is shared: the end of its remote's address, else the name
// of its folder.
std::string repository_name(const Project& project);

// Where this session's runs come from: commit and branch from git, or from the variables that CI
// services set where git only knows a detached head.
Surroundings survey(const Project& project, Launcher& launcher);

// What git says that a commit changed, against its first parent. None: it is not a commit of this
// repository, or there is no git.
std::optional<CommitChange> change_of_commit(const Project& project, const std::string& commit,
                                             Launcher& launcher);

// The lines of each file, as it is now, that an edit put there or cut something after. Blank
// lines and comments are left out: they are between tests and change none.
using ChangedLines = std::map<std::string, std::vector<int>>;

// What `git diff -U0` says.
ChangedLines read_diff(std::string_view diff);

struct Changes {
  std::string root;  // of the repository
  ChangedLines lines;
  std::set<std::string> new_files;  // that git does not know yet
};

// Everything that differs from where this work tree left `revision`.
Result<Changes> changes_since(const std::string& revision, const Project& project,
                              Launcher& launcher);

struct ChangedTests {
  std::set<TestId> changed;    // their lines, or their file where the suite gives no lines
  std::set<TestId> undecided;  // it is not known where they are written
};

// A test reaches from its line to the next test in its file.
ChangedTests changed_tests(const std::vector<std::shared_ptr<const Test>>& tests,
                           const Changes& changes);

}  // namespace unflake
