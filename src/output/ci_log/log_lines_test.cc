#include "output/ci_log/ci_log.h"

#include <gtest/gtest.h>

#include <string>

namespace unflake {
namespace {

using Texts = std::vector<std::string>;

Texts undecorated(std::string_view text) {
  Texts texts;
  for (const LogLine& line : undecorated_lines(text)) texts.emplace_back(line.text);
  return texts;
}

TEST(LogLines, Lose_the_time_stamps_of_GitHub) {
  EXPECT_EQ(undecorated("\xEF\xBB\xBF"
                        "2024-05-01T12:00:00.1234567Z [ RUN      ] A.b\r\n"
                        "2024-05-01T12:00:00.1234567Z \r\n2024-05-01T12:00:00.1234567Z   deep\r\n"),
            (Texts{"[ RUN      ] A.b", "", "  deep"}));
}

TEST(LogLines, Keep_the_time_stamps_of_the_test) {
  EXPECT_EQ(undecorated("[ RUN      ] A.b\n12:00:00 one\n12:00:01 two\n12:00:02 three\n"),
            (Texts{"[ RUN      ] A.b", "12:00:00 one", "12:00:01 two", "12:00:02 three"}));
}

TEST(LogLines, Keep_the_time_stamps_of_the_test_behind_those_of_the_CI_system) {
  EXPECT_EQ(undecorated("[2024-05-01T12:00:00.123Z] [ RUN      ] A.b\n"
                        "[2024-05-01T12:00:00.124Z] [12:00:00] listening\n"),
            (Texts{"[ RUN      ] A.b", "[12:00:00] listening"}));
}

TEST(LogLines, Lose_folds_and_build_steps) {
  EXPECT_EQ(undecorated("##[group]Run ctest\nsection_start:1:x\n[3/9] Building CXX object a.o\n"
                        "##[error]Process completed\nsection_end:1:x\rtext\n[3/9] files read\n"),
            (Texts{"Process completed", "text", "[3/9] files read"}));
}

TEST(LogLines, Keep_what_was_written_last_over_a_line) {
  EXPECT_EQ(undecorated("10%\r20%\rdone\r\n"), (Texts{"done"}));
}

TEST(LogLines, Know_the_service_that_printed_them) {
  const auto lines = undecorated_lines("db-1  | ready\ntests-1  | [ RUN      ] A.b\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].source, "db-1");
  EXPECT_EQ(lines[1].source, "tests-1");
  EXPECT_EQ(lines[1].text, "[ RUN      ] A.b");
}

TEST(LogLines, Keep_bars_in_what_tests_print) {
  EXPECT_EQ(undecorated("[ RUN      ] A.b\nname | value\na | 1\nb | 2\n"),
            (Texts{"[ RUN      ] A.b", "name | value", "a | 1", "b | 2"}));
}

TEST(LogLines, Are_numbered_as_in_the_log) {
  const auto lines = undecorated_lines("::group::x\na\n\nb");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 2u);
  EXPECT_EQ(lines[2].number, 4u);
}

TEST(LogLines, Are_the_last_ones_of_a_log_with_too_many) {
  const std::string text(most_log_lines + 10, '\n');
  const auto lines = undecorated_lines(text);
  ASSERT_EQ(lines.size(), most_log_lines);
  EXPECT_EQ(lines.front().number, 11u);
}

}  // namespace
}  // namespace unflake
