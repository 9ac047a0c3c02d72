#include "util/files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace unflake {
namespace {

class FindSource : public testing::Test {
 protected:
  FindSource() {
    std::filesystem::create_directories(folder_.file("net/http"));
    std::ofstream(folder_.file("net/http/server.cc")) << "int main() {}\n";
    std::ofstream(folder_.file("main.cc")) << "int main() {}\n";
  }

  std::string found(const std::string& path) const { return find_source(path, folder_.path()); }

  const TempFolder folder_;
  const std::string server_ = folder_.file("net/http/server.cc");
};

TEST_F(FindSource, Where_it_was_built) {
  EXPECT_EQ(found(server_), server_);
  EXPECT_EQ(found("net/http/server.cc"), server_);
}

TEST_F(FindSource, Below_the_root_and_not_where_we_are) {
  const auto here = std::filesystem::current_path();
  const TempFolder other;
  std::filesystem::create_directories(other.file("net/http"));
  std::ofstream(other.file("net/http/server.cc")) << "// another one\n";
  std::filesystem::current_path(other.path());
  EXPECT_EQ(found("net/http/server.cc"), server_);
  std::filesystem::current_path(here);
}

TEST_F(FindSource, Here_when_it_was_built_elsewhere) {
  EXPECT_EQ(found("/home/ci/project/net/http/server.cc"), server_);
  EXPECT_EQ(found("/home/ci/project/build/../net/http/server.cc"), server_);
  EXPECT_EQ(found("../../net/http/server.cc"), server_);
}

TEST_F(FindSource, Not_by_its_name_alone) {
  EXPECT_EQ(found("/home/ci/other/main.cc"), "");
  EXPECT_EQ(found("/home/ci/other/server.cc"), "");
  EXPECT_EQ(found(""), "");
}

TEST_F(FindSource, No_folder_is_a_source) {
  EXPECT_EQ(found("net/http"), "");
}

}  // namespace
}  // namespace unflake
