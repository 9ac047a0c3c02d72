#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suite/adapter.h"
#include "util/files.h"
#include "util/result.h"

namespace unflake {

// The names of work folders begin with it.
inline constexpr const char* work_folder_prefix = "unflake-rebuild-";

// A temporary folder that is removed with everything in it. A process that was killed leaves its
// folder behind, unlocked: the next one removes it.
class WorkFolder {
 public:
  // In $TMPDIR, else in /tmp.
  static Result<WorkFolder> make();
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // It stays, for whoever wants to look into it, and is never taken for a leftover.
  void keep();

 private:
  WorkFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
  bool is_kept_ = false;
};

// The sources that a program is built from.
struct Sources {
  std::string root;
  bool is_git = false;  // and has a commit
  std::string commit;   // that is checked out
  bool is_dirty = false;
};

Sources source_tree_of(const std::string& folder, Launcher& launcher);

// The full name of a commit; an error that names the repository when there is no such one.
Result<std::string> commit_named(const Sources& tree, const std::string& revision,
                                 Launcher& launcher);

// Up to this much is copied of what git does not know.
struct CopyLimits {
  uint64_t files = 200'000;
  uint64_t bytes = uint64_t{4} << 30;
};

// Copies the tree as it is, with changes that were not committed and files that git does not
// ignore; without build folders. Nothing of the tree, its index or its branches is touched: the
// copy is a repository of its own that borrows the objects of the other.
Result<void> copy_tree(const Sources& tree, const std::string& to, Launcher& launcher,
                       const CopyLimits& limits = {});

// The same of a commit, without what was not committed.
Result<void> copy_commit(const Sources& tree, const std::string& commit, const std::string& to,
                         Launcher& launcher);

// They are copied as they are checked out, whatever the commit.
bool has_submodules(const Sources& tree, Launcher& launcher);

// Goes to another commit in such a copy. What a build left there stays, unless it is to be clean.
Result<void> go_to_commit(const std::string& copy, const std::string& commit, bool clean,
                          Launcher& launcher);

struct ListedCommit {
  std::string id, subject;
};
// Oldest first, from the one to the other along first parents; an error when there is no such way.
Result<std::vector<ListedCommit>> commits_between(const Sources& tree, const std::string& from,
                                                  const std::string& to, Launcher& launcher);

// An error that says where when it does not apply.
Result<void> apply_patch(const std::string& copy, const std::string& patch, Launcher& launcher);

// What one commit changed against another, as a patch.
Result<std::string> diff_between(const Sources& tree, const std::string& from,
                                 const std::string& to, Launcher& launcher);

// It holds what a build made.
bool is_build_folder(const std::string& folder);

}  // namespace unflake
