#include "symbols/loadable.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/code_fixture.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

std::string why_not(const std::string& path) {
  const auto result = check_loadable(path);
  return result ? "" : to_string(result.error());
}

class Loadable : public testing::Test {
 protected:
  // A copy of an ordinary program with one word of its header overwritten.
  std::string with_header(size_t offset, uint16_t value) {
    const std::string path = folder.file("changed");
    std::filesystem::copy_file(code_fixture("gcc_tiny"), path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
    return path;
  }

  TempFolder folder;
};

TEST_F(Loadable, An_ordinary_program_is) {
  EXPECT_EQ(why_not(code_fixture("gcc_O2")), "");
  EXPECT_EQ(why_not(code_fixture("gcc_no_pie")), "");
  EXPECT_EQ(why_not(code_fixture("gcc_stripped")), "");
}

TEST_F(Loadable, A_script_is_because_of_what_it_starts) {
  std::ofstream(folder.file("script")) << "#!/bin/sh\nexec ./program\n";
  EXPECT_EQ(why_not(folder.file("script")), "");
}

TEST_F(Loadable, A_static_program_is_not) {
  EXPECT_THAT(why_not(code_fixture("gcc_static")), HasSubstr("statically"));
}

TEST_F(Loadable, A_setuid_program_is_not) {
  const std::string path = folder.file("setuid");
  std::filesystem::copy_file(code_fixture("gcc_tiny"), path);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  EXPECT_THAT(why_not(path), HasSubstr("setuid"));
}

TEST_F(Loadable, A_program_for_another_machine_is_not) {
  EXPECT_THAT(why_not(with_header(offsetof(Elf64_Ehdr, e_machine), EM_AARCH64)),
              HasSubstr("64-bit x86"));
}

TEST_F(Loadable, An_object_file_is_not) {
  EXPECT_THAT(why_not(with_header(offsetof(Elf64_Ehdr, e_type), ET_REL)),
              HasSubstr("not an executable"));
}

TEST_F(Loadable, A_missing_file_is_not) {
  EXPECT_THAT(why_not(folder.file("missing")), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace unflake
