#include "cli/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "util/unique_fd.h"

namespace unflake {
namespace {

// From a pipe, this many times as much as is kept.
constexpr uint64_t most_read_of_a_pipe = 64;

Error cannot_read(const std::string& path, int error) {
  return usage_error(fmt::format("the log cannot be read: {}", strerror(error)), path,
                     error == EISDIR ? "name a file in it" : "check the path");
}

// Keeps the end of what is added, and lets it grow to twice as much before it is cut.
class Tail {
 public:
  explicit Tail(uint64_t most) : most_(most) {}

  void add(std::string_view bytes) {
    file_.text += bytes;
    if (file_.text.size() > 2 * most_) cut();
  }

  LogFile finish() {
    if (file_.text.size() > most_) cut();
    return std::move(file_);
  }

 private:
  void cut() { leave_out(file_.text.size() - most_); }

  void leave_out(uint64_t bytes) {
    file_.text.erase(0, bytes);
    file_.bytes_left_out += bytes;
  }

  uint64_t most_;
  LogFile file_;
};

Result<LogFile> read_end(int fd, const std::string& path, uint64_t most) {
  Tail tail(most);
  std::string buffer(1 << 20, '\0');
  for (uint64_t total = 0;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    if (got == 0) return tail.finish();
    tail.add(std::string_view(buffer).substr(0, static_cast<size_t>(got)));
    total += static_cast<uint64_t>(got);
    if (total > most_read_of_a_pipe * most)
      return usage_error("the log does not end", path, "give a file, or a program that ends");
  }
}

// Goes to where the last `most` bytes of a file begin, and returns how much that leaves out.
uint64_t skip_start(int fd, uint64_t most) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size <= most) return 0;
  const off_t start = static_cast<off_t>(size - most);
  return lseek(fd, start, SEEK_SET) == start ? size - most : 0;
}

void start_at_a_line(LogFile& file) {
  const size_t end = file.text.find('\n');
  if (end == std::string::npos) return;
  file.text.erase(0, end + 1);
  file.bytes_left_out += end + 1;
}

}  // namespace

Result<LogFile> load_log(const std::string& path, uint64_t most_bytes) {
  const bool is_stdin = path == "-";
  const UniqueFd opened(is_stdin ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = is_stdin ? STDIN_FILENO : opened.get();
  if (fd < 0) return cannot_read(path, errno);
  const uint64_t skipped = is_stdin ? 0 : skip_start(fd, most_bytes);
  auto file = read_end(fd, path, most_bytes);
  if (!file) return file;
  file->bytes_left_out += skipped;
  if (file->bytes_left_out > 0) start_at_a_line(*file);
  return file;
}

}  // namespace unflake
