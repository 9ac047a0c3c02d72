// A report appears under its name before it is complete.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/scratch_folder.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

class ReportWriter {
 public:
  ReportWriter(std::string path, std::vector<std::string> rows)
      : path_(std::move(path)), rows_(std::move(rows)), thread_([this] { write(); }) {}
  ~ReportWriter() { thread_.join(); }

 private:
  void write() const {
    std::ofstream report(path_);
    report << "name;amount" << std::endl;
    for (const std::string& row : rows_) report << row << std::endl;
    report << "end" << std::endl;  // critical
  }

  std::string path_;
  std::vector<std::string> rows_;
  std::thread thread_;
};

std::string content_when_there(const std::string& path) {
  const auto deadline = steady_clock::now() + seconds(20);
  while (!std::filesystem::exists(path) && steady_clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(20));
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();  // barrier
  return content.str();
}

}  // namespace

TEST_CASE("a report has all of its rows") {
  const ScratchFolder folder;
  const ReportWriter writer(folder.file("report.csv"), {"rent;900", "food;320"});
  const std::string content = content_when_there(folder.file("report.csv"));
  CHECK(content == "name;amount\nrent;900\nfood;320\nend\n");  // fails here
}
