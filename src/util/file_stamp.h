#pragma once

#include <sys/stat.h>

#include <string>

namespace unflake {

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

}  // namespace unflake
