#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <fstream>
#include <sstream>

#include "faults/child.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

constexpr int cannot_mount = 77;

// A disk of its own for the calling process, without any room left.
bool mount_full_disk(const std::string& folder) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") != 0) return false;
  const int fill = ::open((folder + "/fill").c_str(), O_CREAT | O_WRONLY, 0600);
  const std::string block(4096, 'x');
  while (::write(fill, block.data(), block.size()) > 0) {
  }
  return true;
}

int run_on_full_disk(const std::string& disk, const std::string& elsewhere) {
  if (!mount_full_disk(disk) || ::chdir(disk.c_str()) != 0) return cannot_mount;
  ::setenv("HOME", elsewhere.c_str(), 1);
  ::setenv("TMPDIR", elsewhere.c_str(), 1);
  ::unsetenv("XDG_STATE_HOME");
  const int output = ::open((elsewhere + "/output").c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execl(UNFLAKE_COMMAND, "unflake", "run", "--", "/bin/true", nullptr);
  return 127;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(FullDisk, At_the_start_does_not_keep_tests_from_running) {
  const TempFolder disk, elsewhere;
  Child child([&] { return run_on_full_disk(disk.path(), elsewhere.path()); });
  const int status = child.wait();
  if (status == cannot_mount) GTEST_SKIP() << "no disk can be mounted here";
  const std::string output = text_of(elsewhere.file("output"));
  EXPECT_EQ(status, 4) << output;  // not all runs are in the history, as when a disk fills later
  EXPECT_THAT(output, HasSubstr("1 passed"));
  EXPECT_THAT(output, HasSubstr("the history cannot be written"));
  EXPECT_THAT(output, HasSubstr("1 run could not be written to the history, and is kept in"));
  EXPECT_THAT(output, HasSubstr("unflake history import"));
}

}  // namespace
}  // namespace unflake
