#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

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

}  // namespace unflake
