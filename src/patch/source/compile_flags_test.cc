#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "patch/literals/time_literal.h"
#include "patch/source/source_unit.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;

// Without headers of the system, so that it is read in no time.
constexpr const char* source = R"source(extern "C" int usleep(unsigned);
void wait() {
#ifdef SHORT
  usleep(1000);
#else
  usleep(DELAY);
#endif
}
)source";

class CompileFlags : public testing::Test {
 protected:
  CompileFlags() {
    std::filesystem::create_directories(folder.file("the project/.git"));
    std::filesystem::create_directories(folder.file("the project/build-debug"));
    std::filesystem::create_directories(folder.file("the project/tests"));
    write("tests/wait.cc", source);
    write("tests/wait.h", "#pragma once\n" + std::string(source));
  }
  std::string path(const std::string& name) const { return folder.file("the project/" + name); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
  }
  void write_commands(const std::string& name) {
    write(name, R"([{"directory": ")" + path("build-debug") +
                    R"(", "file": "../tests/wait.cc", "arguments": ["g++", "-fno-such-flag", )"
                    R"("-DSHORT", "-o", "wait.o", "-c", "../tests/wait.cc"]}])");
  }
  bool finds(const std::string& file, int line, const std::string& commands = "") {
    return edit_time_literal({path(file), line, "usleep", 1ms}, 2ms, commands).has_value();
  }

  TempFolder folder;
};

TEST_F(CompileFlags, Are_found_from_a_program_whatever_its_folder_is_called) {
  std::filesystem::create_directories(path("b/tests"));
  write_commands("b/compile_commands.json");
  EXPECT_EQ(compile_commands_of(path("tests/wait.cc"), ""), "");
  EXPECT_EQ(compile_commands_above(path("b/tests/wait_test")), path("b"));
}

TEST_F(CompileFlags, Come_from_the_folder_that_is_named) {
  write_commands("tests/compile_commands.json");
  std::filesystem::create_directories(path("elsewhere"));
  std::filesystem::rename(path("tests/compile_commands.json"),
                          path("elsewhere/compile_commands.json"));
  EXPECT_TRUE(finds("tests/wait.cc", 4, path("elsewhere")));
  EXPECT_FALSE(finds("tests/wait.cc", 4));
  EXPECT_FALSE(finds("tests/wait.cc", 4, path("tests")));
}

TEST_F(CompileFlags, Are_found_in_a_build_folder_above_the_file) {
  write_commands("build-debug/compile_commands.json");
  EXPECT_TRUE(finds("tests/wait.cc", 4));
}

TEST_F(CompileFlags, Of_a_header_are_those_of_a_file_like_it) {
  write_commands("build-debug/compile_commands.json");
  EXPECT_TRUE(finds("tests/wait.h", 5));
}

TEST_F(CompileFlags, Are_guessed_when_the_commands_cannot_be_read) {
  write("build-debug/compile_commands.json", "{ not JSON");
  write("tests/other.cc", "#include \"delay.h\"\nint usleep(unsigned);\nint x = usleep(kDelay);\n");
  std::filesystem::create_directories(path("include"));
  write("include/delay.h", "constexpr unsigned kDelay = 1000;\n");
  EXPECT_TRUE(finds("tests/other.cc", 3));
}

}  // namespace
}  // namespace unflake
