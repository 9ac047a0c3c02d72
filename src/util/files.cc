#include "util/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "util/text.h"

namespace unflake {
namespace {

namespace fs = std::filesystem;

Error cannot(std::string_view what, const std::string& path, int error) {
  return usage_error(fmt::format("cannot {}: {}", what, std::strerror(error)), printable(path),
                     "name a file in a folder that you may write to");
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

bool is_pipe_or_device(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// mkstemp() makes private files; a report is for others to collect.
void open_to_others(int fd) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);
}

Result<void> write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written >= 0)
      content.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR)
      return cannot("write the file", path, errno);
  }
  return {};
}

Result<void> write_in_place(const std::string& path, std::string_view content) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return cannot("open the file", path, errno);
  return write_all(file.get(), path, content);
}

Result<void> write_and_rename(const std::string& temporary, int fd, const std::string& path,
                              std::string_view content) {
  open_to_others(fd);
  if (const Result<void> written = write_all(fd, path, content); !written) return written;
  if (::fsync(fd) != 0) return cannot("write the file", path, errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return cannot("replace the file", path, errno);
  return {};
}

}  // namespace

Result<void> prepare_output_file(const std::string& path) {
  if (is_pipe_or_device(path)) return {};
  std::error_code failed;
  if (path.empty() || fs::is_directory(path, failed)) return cannot("write the file", path, EISDIR);
  fs::create_directories(folder_of(path), failed);
  if (failed) return cannot("create the folder", folder_of(path).string(), failed.value());
  if (::access(folder_of(path).c_str(), W_OK) != 0)
    return cannot("create a file in the folder", folder_of(path).string(), errno);
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view content) {
  if (is_pipe_or_device(path)) return write_in_place(path, content);
  std::string temporary = path + ".XXXXXX";
  const UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return cannot("create the file", path, errno);
  const Result<void> written = write_and_rename(temporary, file.get(), path, content);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

namespace {

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

std::string find_source(const std::string& path, const std::string& root) {
  if (path.empty()) return "";
  const fs::path known(path);
  // Relative to the root first: a copy of the project elsewhere is not the one that we are in.
  for (const fs::path& place : {root / known, known})
    if (is_file(place)) return place.string();
  fs::path end = known.lexically_normal().relative_path();
  while (end.has_parent_path()) {
    if (*end.begin() != ".." && is_file(root / end)) return (root / end).string();
    end = end.lexically_relative(*end.begin());
  }
  return "";
}

std::string project_root() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  return failed ? "" : project_root_of(here.string());
}

std::string project_root_of(const std::string& folder) {
  std::error_code ignored;
  for (fs::path above = folder; !above.empty(); above = above.parent_path()) {
    if (fs::exists(above / ".unflake", ignored) || fs::exists(above / ".git", ignored))
      return above.string();
    if (above == above.parent_path()) break;
  }
  return folder;
}

}  // namespace unflake
