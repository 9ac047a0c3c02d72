#include "util/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/temp_folder.h"

namespace unflake {
namespace {

TEST(ProjectRoot, Is_the_nearest_folder_with_a_sign_of_a_project) {
  const TempFolder folder;
  for (const char* sign : {".git", ".unflake"}) {
    const std::string root = folder.file(sign + 1);
    std::filesystem::create_directories(root + "/" + sign);
    std::filesystem::create_directories(root + "/src/net");
    EXPECT_EQ(project_root_of(root + "/src/net"), root);
    EXPECT_EQ(project_root_of(root), root);
  }
}

TEST(ProjectRoot, Is_the_start_itself_where_there_is_no_project) {
  EXPECT_EQ(project_root_of("/proc/self/fd"), "/proc/self/fd");
}

TEST(ProjectRoot, Is_empty_where_the_current_folder_is_gone) {
  const TempFolder folder;
  const auto ask_from_nowhere = [&] {
    const bool moved = ::chdir(folder.path().c_str()) == 0 && ::rmdir(folder.path().c_str()) == 0;
    std::_Exit(moved && project_root().empty() ? 0 : 1);
  };
  EXPECT_EXIT(ask_from_nowhere(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace unflake
