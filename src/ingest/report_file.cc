#include "ingest/report_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <vector>

#include "util/result.h"

namespace unflake {

ByteSource bytes_of_descriptor(int fd, std::string name) {
  return [fd, name = std::move(name)](std::span<char> into) -> Result<size_t> {
    for (;;) {
      const ssize_t count = ::read(fd, into.data(), into.size());
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR)
        return usage_error(fmt::format("cannot be read: {}", ::strerror(errno)), name,
                           "check the file and its disk");
    }
  };
}

ByteSource bytes_of_text(std::string_view text) {
  return [text](std::span<char> into) mutable -> Result<size_t> {
    const size_t count = std::min(into.size(), text.size());
    std::copy_n(text.begin(), count, into.begin());
    text.remove_prefix(count);
    return count;
  };
}

namespace {

EVP_MD_CTX* digest(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

void ContentHash::Free::operator()(void* context) const {
  EVP_MD_CTX_free(digest(context));
}

ContentHash::ContentHash() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(digest(context_.get()), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

void ContentHash::add(std::string_view bytes) {
  EVP_DigestUpdate(digest(context_.get()), bytes.data(), bytes.size());
}

void ContentHash::add_field(std::string_view text) {
  add(fmt::format("{}:", text.size()));
  add(text);
}

std::string ContentHash::hex() && {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(digest(context_.get()), bytes, &size);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

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
    return internally(failed("cannot make a temporary file", folder, "set TMPDIR to another"));
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
