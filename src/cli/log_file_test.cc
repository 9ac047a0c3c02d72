#include "cli/reproduce_parts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "output/ci_log/ci_log.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

std::string written(const TempFolder& folder, const std::string& text) {
  std::ofstream(folder.file("log")) << text;
  return folder.file("log");
}

TEST(LogFile, Is_read_whole) {
  const TempFolder folder;
  const auto file = load_log(written(folder, "one\ntwo\n"));
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->text, "one\ntwo\n");
  EXPECT_EQ(file->bytes_left_out, 0u);
}

TEST(LogFile, Is_read_from_the_start_of_a_line_when_it_is_too_long) {
  const TempFolder folder;
  const auto file = load_log(written(folder, "first\nsecond\nthird\n"), 10);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->text, "third\n");
  EXPECT_EQ(file->bytes_left_out, 13u);
}

TEST(LogFile, Of_300_MB_shows_the_failure_at_its_end) {
  const TempFolder folder;
  const std::string path = written(folder, "");
  std::filesystem::resize_file(path, 300 << 20);  // a hole, which takes no room
  constexpr uint64_t most = 1 << 20;
  std::ofstream(path, std::ios::app)
      << std::string(most, '\n') << "[ RUN      ] A.b\na.cc:3: Failure\nFailed\n"
      << "[  FAILED  ] A.b (0 ms)\n";
  const auto file = load_log(path, most);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_LE(file->text.size(), most);
  EXPECT_EQ(file->text.size() + file->bytes_left_out, std::filesystem::file_size(path));
  const auto log = read_ci_log(file->text);
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(log->failures.size(), 1u);
}

TEST(LogFile, May_be_a_pipe) {
  const TempFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "first\nsecond\nthird\n"; });
  const auto file = load_log(path, 10);
  writer.join();
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->text, "third\n");
  EXPECT_EQ(file->bytes_left_out, 13u);
}

TEST(LogFile, Is_an_error_where_there_is_none) {
  const TempFolder folder;
  const auto file = load_log(folder.file("missing"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::usage);
  EXPECT_EQ(file.error().where, folder.file("missing"));
}

TEST(LogFile, Is_an_error_for_a_folder) {
  const TempFolder folder;
  const auto file = load_log(folder.path());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().next, "name a file in it");
}

TEST(LogFile, Is_an_error_where_it_never_ends) {
  const auto file = load_log("/dev/zero", 1 << 20);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().what.find("does not end"), std::string::npos);
}

}  // namespace
}  // namespace unflake
