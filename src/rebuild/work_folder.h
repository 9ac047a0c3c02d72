#pragma once

#include <string>

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

}  // namespace unflake
