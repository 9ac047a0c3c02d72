#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "history/quarantine.h"
#include "util/output_file.h"
#include "util/unique_fd.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

constexpr int most_tries = 100;

Error cannot(const char* what, const std::string& path, int error) {
  return usage_error(fmt::format("the quarantine cannot be {}: {}", what, std::strerror(error)),
                     path);
}

// Tells one content of a file from a later one.
struct FileState {
  ino_t inode = 0;
  off_t size = -1;
  timespec modified{};

  bool operator==(const FileState& other) const {
    return inode == other.inode && size == other.size && modified.tv_sec == other.modified.tv_sec &&
           modified.tv_nsec == other.modified.tv_nsec;
  }
};

FileState state_of(const struct stat& status) {
  return {status.st_ino, status.st_size, status.st_mtim};
}

FileState state_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? state_of(status) : FileState();
}

struct FileText {
  std::string text;
  FileState state;
};

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path, errno);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > (64u << 20)) return cannot("read", path, EFBIG);
  }
}

Result<FileText> read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return FileText();
  if (!file) return cannot("read", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return cannot("read", path, errno);
  auto text = read_all(file.get(), path);
  if (!text) return text.error();
  return FileText{std::move(*text), state_of(status)};
}

// The folder is what is locked: a lock file would be one more file to keep out of git, and a lock
// on the quarantine itself would be lost when it is replaced.
Result<UniqueFd> lock_folder_of(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return cannot("written", path, errno);
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR) return cannot("locked", path, errno);
  return lock;
}

std::string behind_links(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  return failed ? path : real.string();
}

}  // namespace

Result<Quarantine> load_quarantine(const std::string& path) {
  const auto file = read_file(path);
  if (!file) return file.error();
  return parse_quarantine(file->text, path);
}

Result<void> edit_quarantine(const std::string& given, const QuarantineEdit& edit) {
  const std::string path = behind_links(given);
  const auto lock = lock_folder_of(path);
  if (!lock) return lock.error();
  for (int i = 0; i < most_tries; ++i) {
    const auto old = read_file(path);
    if (!old) return old.error();
    const auto edited = edit(old->text);
    if (!edited) return edited.error();
    if (*edited == old->text) return {};
    // An editor does not ask for the lock.
    if (state_of(path) == old->state) return replace_file(path, *edited);
  }
  return usage_error("the quarantine is changed again and again by somebody else", path,
                     "try again later");
}

}  // namespace unflake
