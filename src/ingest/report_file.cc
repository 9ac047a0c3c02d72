#include "ingest/report_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "ingest/content_hash.h"
#include "util/environment.h"

namespace unflake {
namespace {

constexpr size_t piece_bytes = 256 * 1024;

Error failed(const std::string& what, const std::string& where, const std::string& next) {
  return usage_error(fmt::format("{}: {}", what, ::strerror(errno)), where, next);
}

std::string temporary_folder() {
  const std::string given = environment_variable("TMPDIR");
  return given.starts_with('/') ? given : "/tmp";
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      Error error = failed("the report cannot be kept for reading", folder, "make room there");
      error.kind = ErrorKind::internal;
      return error;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace

Result<ReportFile> ReportFile::open(const std::string& path) {
  ReportFile file;
  file.name_ = path;
  file.fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.fd_) return failed("cannot be opened", path, "check its name and its rights");
  struct stat status {};
  ::fstat(file.fd_.get(), &status);
  if (!S_ISREG(status.st_mode)) return copy_of(bytes_of_descriptor(file.fd_.get(), path), path);
  file.modified_ = TimePoint(std::chrono::seconds(status.st_mtim.tv_sec));
  if (const auto inspected = file.inspect(); !inspected) return inspected.error();
  return file;
}

Result<ReportFile> ReportFile::copy_of(const ByteSource& source, const std::string& name,
                                       uint64_t most) {
  ReportFile file;
  file.name_ = name;
  file.modified_ = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string folder = temporary_folder();
  std::string path = folder + "/unflake-report-XXXXXX";
  file.fd_.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.fd_)
    return failed("no temporary file can be made", folder, "set TMPDIR to a folder with room");
  ::unlink(path.c_str());
  ContentHash hash;
  std::vector<char> piece(piece_bytes);
  for (;;) {
    const auto count = source(piece);
    if (!count) return count.error();
    if (*count == 0) break;
    const std::string_view bytes(piece.data(), *count);
    file.size_ += bytes.size();
    if (file.size_ > most)
      return usage_error(fmt::format("is larger than {} bytes", most), name, "split the report");
    if (const auto written = write_all(file.fd_.get(), bytes, folder); !written)
      return written.error();
    hash.add(bytes);
  }
  file.hash_ = std::move(hash).hex();
  return file;
}

Result<void> ReportFile::inspect() {
  ContentHash hash;
  auto source = bytes();
  if (!source) return source.error();
  std::vector<char> piece(piece_bytes);
  for (;;) {
    const auto count = (*source)(piece);
    if (!count) return count.error();
    if (*count == 0) break;
    size_ += *count;
    hash.add({piece.data(), *count});
  }
  hash_ = std::move(hash).hex();
  return {};
}

Result<ByteSource> ReportFile::bytes() const {
  if (::lseek(fd_.get(), 0, SEEK_SET) < 0)
    return failed("cannot be read again", name_, "give it as a file");
  return bytes_of_descriptor(fd_.get(), name_);
}

}  // namespace unflake
