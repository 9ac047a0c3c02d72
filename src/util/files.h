#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "util/result.h"

namespace unflake {

// Creates the missing folders and refuses a path that cannot become a file: better before the
// tests have run for an hour than after.
Result<void> prepare_output_file(const std::string& path);

// Readers see the old file or the whole new one. A pipe or a device is written to instead.
Result<void> replace_file(const std::string& path, std::string_view content);

// Tells a file from the one that was at the same path before.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_ns = 0;

  static FileStamp of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    if (S_ISDIR(status.st_mode)) return {status.st_dev, status.st_ino, 0, 0};
    return {status.st_dev, status.st_ino, status.st_size,
            status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
  }
  bool operator==(const FileStamp&) const = default;
};

// Where a source is that a build knew by this path: there, or below `root` when it was built in
// another folder or machine, by as much of the path's end as matches here, at least a folder.
// Empty: nowhere.
std::string find_source(const std::string& path, const std::string& root);

// The folder that a user thinks of as the project: the nearest one at or above the current folder
// that holds `.unflake` or `.git`, else the current one. Empty when the current folder is gone.
std::string project_root();

// The same, as seen from another folder.
std::string project_root_of(const std::string& folder);

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Readable once the process has ended. (The header of glibc 2.36 declares its own wrapper without C
// linkage.)
inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace unflake
