// A log is written by a thread that starts with the first line; its file is read a little later.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "support/scratch_folder.h"

namespace {

using std::chrono::milliseconds;

class FileLog {
 public:
  explicit FileLog(std::string path) : path_(std::move(path)) {}
  ~FileLog() {
    closing_ = true;
    if (flusher_.joinable()) flusher_.join();
  }

  void write(const std::string& line) {
    std::lock_guard lock(mutex_);
    buffer_ += line + "\n";
    if (!flusher_.joinable()) flusher_ = std::thread([this] { flush_regularly(); });
  }

 private:
  void flush_regularly() {
    while (!closing_) {
      std::this_thread::sleep_for(milliseconds(5));
      flush();
    }
  }

  void flush() {
    std::lock_guard lock(mutex_);
    std::ofstream(path_, std::ios::app) << std::exchange(buffer_, {});  // critical
  }

  std::string path_;
  std::mutex mutex_;
  std::string buffer_;
  std::atomic<bool> closing_{false};
  std::thread flusher_;
};

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();  // barrier
  return content.str();
}

}  // namespace

int main() {
  const ScratchFolder folder;
  FileLog log(folder.file("app.log"));
  log.write("started");
  log.write("listening");
  std::this_thread::sleep_for(milliseconds(60));
  const std::string content = content_of(folder.file("app.log"));
  if (content == "started\nlistening\n") return EXIT_SUCCESS;
  std::fprintf(stderr, "the log holds \"%s\"\n", content.c_str());
  return EXIT_FAILURE;
}
