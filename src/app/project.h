#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/events.h"
#include "study/fixes.h"
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

}  // namespace unflake
