#include "ingest/report_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "util/environment.h"

namespace unflake {
namespace {

constexpr size_t piece_bytes = 256 * 1024;

Error failed(const std::string& what, const std::string& where, const std::string& next) {
  return usage_error(fmt::format("{}: {}", what, ::strerror(errno)), where, next);
}

Error internally(Error error) {
  error.kind = ErrorKind::internal;
  return error;
}

std::string temporary_folder() {
  const std::string given = environment_variable("TMPDIR");
  return given.starts_with('/') ? given : "/tmp";
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return internally(failed("the report cannot be kept for reading", folder, "make room there"));
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

Result<ReportFile> ReportFile::copy_of(const ByteSource& source, const std::string& name) {
  ReportReceiver receiver(name);
  std::vector<char> piece(piece_bytes);
  for (;;) {
    const auto count = source(piece);
    if (!count) return count.error();
    if (const auto added = receiver.add({piece.data(), *count}); !added) return added.error();
    if (*count == 0) return std::move(receiver).file();
  }
}

ReportReceiver::ReportReceiver(std::string name, uint64_t most_bytes) : most_bytes_(most_bytes) {
  file_.name_ = std::move(name);
  file_.modified_ = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

Result<void> ReportReceiver::make_file() {
  const std::string folder = temporary_folder();
  std::string path = folder + "/unflake-report-XXXXXX";
  file_.fd_.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!file_.fd_)
    return internally(failed("no temporary file can be made", folder, "set TMPDIR to another"));
  ::unlink(path.c_str());
  return {};
}

Result<void> ReportReceiver::add(std::string_view bytes) {
  if (!file_.fd_)
    if (const auto made = make_file(); !made) return made;
  file_.size_ += bytes.size();
  if (file_.size_ > most_bytes_)
    return usage_error(fmt::format("is larger than {} bytes", most_bytes_), file_.name_,
                       "split the report");
  hash_.add(bytes);
  return write_all(file_.fd_.get(), bytes, temporary_folder());
}

ReportFile ReportReceiver::file() && {
  file_.hash_ = std::move(hash_).hex();
  return std::move(file_);
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
