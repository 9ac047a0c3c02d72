#include "report/trace_text.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

ProcessResult wrote(std::string text) {
  ProcessResult process;
  process.output = {.head = text, .tail = "", .total = text.size()};
  return process;
}

TEST(Excerpt, Counts_bytes_where_the_middle_was_not_kept) {
  ProcessResult process = wrote("first\nse");
  process.output.tail = "ond\nthird\nfourth\n";
  process.output.total = 1000;
  EXPECT_EQ(last_lines(process, 2).lines, (std::vector<std::string>{"third", "fourth"}));
  EXPECT_EQ(last_lines(process, 2).left_out_bytes, 1000u - 13);
  EXPECT_EQ(last_lines(process, 5).left_out_bytes, 0u) << "only \"first\" is before these";
  EXPECT_EQ(last_lines(process, 5).left_out, 1u);
}

TEST(LastLines, Are_the_end_of_the_output_and_say_how_much_came_before) {
  const Excerpt excerpt = last_lines(wrote("1\n2\n3\n4\n"), 2);
  EXPECT_EQ(excerpt.lines, (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(excerpt.left_out, 2u);
}

TEST(LastLines, Are_all_lines_when_there_are_few) {
  const Excerpt excerpt = last_lines(wrote("1\n2"), 2);
  EXPECT_EQ(excerpt.lines, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(excerpt.left_out, 0u);
}

TEST(LastLines, Count_an_empty_first_line) {
  EXPECT_EQ(last_lines(wrote("\nb"), 1).left_out, 1u);
  EXPECT_EQ(last_lines(wrote("\nb"), 5).lines, (std::vector<std::string>{"", "b"}));
}

TEST(LastLines, Of_blank_output_are_none) {
  EXPECT_TRUE(last_lines(wrote(""), 5).lines.empty());
  EXPECT_TRUE(last_lines(wrote("\n \n"), 5).lines.empty());
}

TEST(LastLines, Drop_colours_and_escape_everything_else_that_a_terminal_obeys) {
  const Excerpt excerpt = last_lines(wrote("\x1b[1;31mred\x1b[0m\x1b[2Jgone\x1b[9"), 5);
  EXPECT_EQ(excerpt.lines, (std::vector<std::string>{"red\\x1b[2Jgone\\x1b[9"}));
}

TEST(LastLines, Include_standard_error_that_was_kept_apart) {
  ProcessResult process = wrote("out");
  process.errors = {.head = "err\n", .tail = "", .total = 4};
  EXPECT_EQ(last_lines(process, 5).lines, (std::vector<std::string>{"out", "err"}));
}

TEST(LastLines, Are_bounded_each) {
  EXPECT_LE(last_lines(wrote(std::string(100'000, 'x')), 5).lines.at(0).size(), 600u);
}

TEST(PrintableOutput, Never_cuts_a_character_in_two) {
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "€";
  for (size_t most = 80; most < 90; ++most)
    EXPECT_EQ(printable_output(wrote(euros), most).find("\\x"), std::string::npos);
}

}  // namespace
}  // namespace unflake
