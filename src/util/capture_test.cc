#include "util/capture.h"

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

}  // namespace
}  // namespace unflake
