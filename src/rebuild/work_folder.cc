#include "rebuild/work_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "/lock";

std::string temporary_folder() {
  const std::string given = environment_variable("TMPDIR");
  return given.starts_with('/') ? given : "/tmp";
}

// A build may have made files or folders read-only.
void remove_tree(const std::string& folder) {
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (!failed) return;
  for (fs::recursive_directory_iterator
           at(folder, fs::directory_options::skip_permission_denied, failed),
       end;
       !failed && at != end; at.increment(failed)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored))
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
  fs::remove_all(folder, failed);
}

bool is_ours(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::getuid();
}

// One without a lock file is being made, or is kept.
bool is_left_over(const std::string& folder) {
  const UniqueFd lock(::open((folder + lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_leftovers(const std::string& parent) {
  std::error_code failed;
  for (fs::directory_iterator at(parent, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string folder = at->path().string();
    if (at->path().filename().string().starts_with(work_folder_prefix) && is_ours(folder) &&
        is_left_over(folder))
      remove_tree(folder);
  }
}

}  // namespace

Result<WorkFolder> WorkFolder::make() {
  const std::string parent = temporary_folder();
  remove_leftovers(parent);
  std::string path = parent + "/" + work_folder_prefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return internal_error(fmt::format("cannot make a temporary folder: {}", std::strerror(errno)),
                          printable(parent), "set TMPDIR to a folder that can be written to");
  UniqueFd lock(::open((path + lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    remove_tree(path);
    return internal_error(fmt::format("cannot lock a temporary folder: {}", std::strerror(error)),
                          printable(path));
  }
  return WorkFolder(std::move(path), std::move(lock));
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      lock_(std::move(other.lock_)),
      is_kept_(other.is_kept_) {}

void WorkFolder::keep() {
  is_kept_ = true;
  ::unlink((path_ + lock_name).c_str());
}

WorkFolder::~WorkFolder() {
  if (!path_.empty() && !is_kept_) remove_tree(path_);
}

}  // namespace unflake
