#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "patch/literals/time_literal.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

std::string numbered_lines(int count, const std::string& end = "\n") {
  std::string text;
  for (int i = 1; i <= count; ++i) text += "line " + std::to_string(i) + end;
  return text;
}

class UnifiedDiff : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder.file(name), std::ios::binary).rdbuf();
    return text.str();
  }
  SourceEdit edit(const std::string& name, const std::string& old_text,
                  const std::string& new_text) {
    SourceEdit change;
    change.file = folder.file(name);
    change.offset = read(name).find(old_text);
    change.old_text = old_text;
    change.new_text = new_text;
    return change;
  }
  void apply(const Result<std::string>& diff) {
    ASSERT_TRUE(diff) << to_string(diff.error());
    write("the.diff", *diff);
    const std::string git = "git -C '" + folder.path() + "' apply ";
    ASSERT_EQ(std::system((git + "--check the.diff").c_str()), 0) << *diff;
    ASSERT_EQ(std::system((git + "the.diff").c_str()), 0) << *diff;
  }

  TempFolder folder;
};

TEST_F(UnifiedDiff, One_line_has_three_lines_of_context) {
  write("a.cc", numbered_lines(9));
  const auto diff = unified_diff({edit("a.cc", "5", "five")}, folder.path());
  ASSERT_TRUE(diff) << to_string(diff.error());
  EXPECT_EQ(*diff,
            "--- a/a.cc\n+++ b/a.cc\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n"
            "+line five\n line 6\n line 7\n line 8\n");
  apply(diff);
  EXPECT_THAT(read("a.cc"), HasSubstr("line five\n"));
}

TEST_F(UnifiedDiff, Near_edits_share_a_hunk_and_far_ones_do_not) {
  write("a.cc", numbered_lines(40));
  const auto diff =
      unified_diff({edit("a.cc", "line 30", "x"), edit("a.cc", "line 9\n", "two\nlines\n"),
                    edit("a.cc", "line 4", "y")},
                   folder.path());
  apply(diff);
  EXPECT_THAT(*diff, HasSubstr("@@ -1,12 +1,13 @@"));
  EXPECT_THAT(*diff, HasSubstr("@@ -27,7 +28,7 @@"));
}

TEST_F(UnifiedDiff, Several_edits_of_one_line_become_one) {
  write("a.cc", "poll(fds, 100, 200);\n");
  apply(unified_diff({edit("a.cc", "200", "53"), edit("a.cc", "100", "1")}, folder.path()));
  EXPECT_EQ(read("a.cc"), "poll(fds, 1, 53);\n");
}

TEST_F(UnifiedDiff, An_edit_may_reach_over_lines) {
  write("a.cc", "tv.tv_sec = 2;\ntv.tv_usec = 0;\nselect();\n");
  apply(
      unified_diff({edit("a.cc", "2;\ntv.tv_usec = 0", "0;\ntv.tv_usec = 53000")}, folder.path()));
  EXPECT_EQ(read("a.cc"), "tv.tv_sec = 0;\ntv.tv_usec = 53000;\nselect();\n");
}

TEST_F(UnifiedDiff, A_file_may_end_without_a_line_feed) {
  write("a.cc", "first\nlast 200");
  apply(unified_diff({edit("a.cc", "200", "53")}, folder.path()));
  EXPECT_EQ(read("a.cc"), "first\nlast 53");
}

TEST_F(UnifiedDiff, Context_may_end_without_a_line_feed) {
  write("a.cc", "first 200\nlast");
  apply(unified_diff({edit("a.cc", "200", "53")}, folder.path()));
  EXPECT_EQ(read("a.cc"), "first 53\nlast");
}

TEST_F(UnifiedDiff, Line_ends_of_other_systems_are_kept) {
  write("a.cc", numbered_lines(9, "\r\n"));
  apply(unified_diff({edit("a.cc", "5", "five")}, folder.path()));
  EXPECT_THAT(read("a.cc"), HasSubstr("line 4\r\nline five\r\nline 6\r\n"));
}

TEST_F(UnifiedDiff, Files_of_folders_and_names_with_blanks_are_found) {
  std::filesystem::create_directory(folder.file("a folder"));
  write("a folder/b c.cc", "usleep(200);\n");
  write("a.cc", "usleep(200);\n");
  apply(unified_diff({edit("a folder/b c.cc", "200", "53"), edit("a.cc", "200", "54")},
                     folder.path()));
  EXPECT_EQ(read("a folder/b c.cc"), "usleep(53);\n");
  EXPECT_EQ(read("a.cc"), "usleep(54);\n");
}

TEST_F(UnifiedDiff, Two_edits_that_agree_are_one) {
  write("a.cc", "usleep(200);\n");
  apply(unified_diff({edit("a.cc", "200", "53"), edit("a.cc", "200", "53")}, folder.path()));
  EXPECT_EQ(read("a.cc"), "usleep(53);\n");
}

TEST_F(UnifiedDiff, Two_edits_that_contradict_each_other_are_refused) {
  write("a.cc", "usleep(200);\n");
  const auto diff =
      unified_diff({edit("a.cc", "200", "53"), edit("a.cc", "(200)", "(54)")}, folder.path());
  ASSERT_FALSE(diff);
  EXPECT_THAT(diff.error().what, HasSubstr("contradict"));
}

TEST_F(UnifiedDiff, A_file_that_has_changed_since_is_refused) {
  write("a.cc", "usleep(200);\n");
  SourceEdit change = edit("a.cc", "200", "53");
  write("a.cc", "usleep( 200);\n");
  EXPECT_FALSE(unified_diff({change}, folder.path()));
  change.offset = 1000;
  EXPECT_FALSE(unified_diff({change}, folder.path()));
  std::filesystem::remove(folder.file("a.cc"));
  EXPECT_FALSE(unified_diff({change}, folder.path()));
}

TEST_F(UnifiedDiff, A_file_outside_of_the_root_is_refused) {
  std::filesystem::create_directory(folder.file("root"));
  write("a.cc", "usleep(200);\n");
  EXPECT_FALSE(unified_diff({edit("a.cc", "200", "53")}, folder.file("root")));
}

TEST_F(UnifiedDiff, No_edits_are_an_empty_diff) {
  const auto diff = unified_diff({}, folder.path());
  ASSERT_TRUE(diff);
  EXPECT_EQ(*diff, "");
}

}  // namespace
}  // namespace unflake
