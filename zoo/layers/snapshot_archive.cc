// Snapshots are written to a file by a thread in the background.
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "support/scheduler.h"

namespace {

// Closes the file that it has.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

class Archive {
 public:
  // The file stays the caller's.
  void store(int file, std::string snapshot) {
    writer_.post([this, file, snapshot = std::move(snapshot)] { write(file, snapshot); });
  }

  void finish() { writer_.drain(); }
  int stored() const { return stored_; }

 private:
  void write(int file, const std::string& snapshot) {
    if (write_all(file, snapshot)) ++stored_;  // critical
  }

  std::atomic<int> stored_{0};
  base::Scheduler writer_{"archive"};
};

}  // namespace

TEST_CASE("a snapshot is stored") {
  Archive archive;
  {
    const File file(::memfd_create("snapshot", MFD_CLOEXEC));
    archive.store(file.descriptor(), "temperature 21.5\n");
    base::sleep_for(base::Milliseconds(50));
  }  // barrier
  archive.finish();
  CHECK(archive.stored() == 1);  // fails here
}
