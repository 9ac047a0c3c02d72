// An export runs as a process that holds a lock file; the next one starts when it has reported.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "../support/scratch_folder.h"
#include "support/sync.h"

namespace {

class LockFile {
 public:
  explicit LockFile(std::string path) : path_(std::move(path)) {}

  bool acquire() const {
    const int file = ::open(path_.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
  }
  void release() const { ::unlink(path_.c_str()); }

 private:
  std::string path_;
};

// The process: 0 when it has exported, 3 when another one is at it.
int export_rows(const std::string& folder) {
  const LockFile lock(folder + "/export.lock");
  if (!lock.acquire()) return 3;  // barrier
  std::puts("exported 12 rows");
  std::fclose(stdout);
  lock.release();  // critical
  return EXIT_SUCCESS;
}

class Export {
 public:
  explicit Export(const std::string& folder) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl("/proc/self/exe", "nightly_export", "--export", folder.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Export() {
    ::close(output_);
    end();
  }

  std::string report() const {
    std::string text;
    std::array<char, 64> piece{};
    for (ssize_t size = 0; (size = ::read(output_, piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<std::size_t>(size));
    return text;
  }

  int end() {
    if (process_ > 0) ::waitpid(std::exchange(process_, 0), &status_, 0);
    return WEXITSTATUS(status_);
  }

 private:
  pid_t process_ = 0;
  int output_ = -1;
  int status_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--export") return export_rows(argv[2]);
  const ScratchFolder folder;
  const Export monday(folder.file(""));
  if (monday.report() != "exported 12 rows\n") return EXIT_FAILURE;
  base::sleep_for(base::Milliseconds(60));
  Export tuesday(folder.file(""));
  const int status = tuesday.end();
  if (status == 0) return EXIT_SUCCESS;
  std::fprintf(stderr, "the second export ended with %d\n", status);
  return EXIT_FAILURE;
}
