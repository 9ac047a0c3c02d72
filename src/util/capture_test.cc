#include "util/text.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(BoundedCapture, Keeps_everything_that_fits) {
  BoundedCapture capture(4, 4);
  capture.append("abc");
  capture.append("defgh");
  EXPECT_EQ(capture.head(), "abcd");
  EXPECT_EQ(capture.tail(), "efgh");
  EXPECT_EQ(capture.total(), 8u);
}

TEST(BoundedCapture, Keeps_the_first_and_the_last_bytes_however_they_arrive) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + i * 7 % 26);
  for (size_t piece = 1; piece < 100; ++piece) {
    BoundedCapture capture(10, 37);
    for (size_t at = 0; at < text.size(); at += piece)
      capture.append(std::string_view(text).substr(at, piece));
    ASSERT_EQ(capture.head(), text.substr(0, 10)) << piece;
    ASSERT_EQ(capture.tail(), text.substr(text.size() - 37)) << piece;
    ASSERT_EQ(capture.total(), text.size());
  }
}

TEST(CutMiddle, Keeps_start_and_end_and_says_what_is_missing) {
  EXPECT_EQ(cut_middle("start" + std::string(1000, '.') + "end", 84),
            "start\n[... 988 bytes not shown ...]\n............end");
  EXPECT_EQ(cut_middle("short", 84), "short");
}

TEST(CutMiddle, Leaves_what_has_been_cut_as_it_is) {
  const std::string once = cut_middle(std::string(1'000'000, 'x'), 1000);
  EXPECT_LE(once.size(), 1000u);
  EXPECT_EQ(cut_middle(once, 1000), once);
}

TEST(CutMiddle, Keeps_bytes_that_are_no_text) {
  EXPECT_GT(cut_middle(std::string(1'000'000, '\x80'), 1000).size(), 900u);
}

TEST(CutMiddle, Stays_within_limits_that_leave_no_room) {
  EXPECT_EQ(cut_middle("0123456789", 3), "\n[... 10 bytes not shown ...]\n");
}

}  // namespace
}  // namespace unflake
