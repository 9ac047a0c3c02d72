#include "suite/program.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"
#include "support/test_launcher.h"

namespace unflake {
namespace {

using std::chrono_literals::operator""s;

TEST(CommandName, Is_the_same_on_every_machine) {
  EXPECT_EQ(command_name({"/home/me/p/build/run", "/home/me/p/data/x y", "/usr/share/big.bin",
                          "--log=/home/me/p/log/", "-n", "3"},
                         "/home/me/p"),
            "run 'data/x y' big.bin --log=log/ -n 3");
  EXPECT_EQ(command_name({"sh", "-c", "exit 1"}, "/p"), "sh -c 'exit 1'");
  EXPECT_EQ(command_name({"ls", "/", "/p", "/tmp/dir/"}, "/p"), "ls / . dir");
}

TEST(Command, Is_one_test_that_runs_as_it_was_written) {
  TestLauncher launcher;
  const Target target{
      "command", Framework::command, "", {"sh", "-c", "echo \"$0\" $1", "a b", "c"}};
  const auto tests = adapter_for(Framework::command).list(target, {}, launcher);
  ASSERT_TRUE(tests);
  ASSERT_EQ(tests->size(), 1u);
  EXPECT_EQ(to_string(tests->front().id), "command:sh -c 'echo \"$0\" $1' 'a b' c");
  EXPECT_EQ(launcher.launch(tests->front().command, 60s).output.text(), "a b c\n");
}

TEST(FindProgram, Looks_through_PATH_and_accepts_paths) {
  const auto shell = find_program("sh");
  ASSERT_TRUE(shell);
  EXPECT_TRUE(shell->starts_with('/'));
  EXPECT_TRUE(find_program(fixture("script.sh")));
}

TEST(FindProgram, Says_why_a_word_cannot_be_run) {
  EXPECT_NE(to_string(find_program("no-such-program").error()).find("in PATH"), std::string::npos);
  EXPECT_NE(to_string(find_program("./no/such").error()).find("no program"), std::string::npos);
  EXPECT_NE(to_string(find_program(fixture("ctest_project")).error()).find("is a folder"),
            std::string::npos);
  EXPECT_NE(to_string(find_program(fixture("ctest_project/CMakeCache.txt")).error())
                .find("not executable"),
            std::string::npos);
  EXPECT_FALSE(find_program(""));
}

}  // namespace
}  // namespace unflake
