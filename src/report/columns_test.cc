#include "report/layout.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Columns, Counts_what_a_terminal_shows_and_not_bytes) {
  EXPECT_EQ(columns("plain"), 5u);
  EXPECT_EQ(columns("größe"), 5u);
  EXPECT_EQ(columns("試験"), 4u);
  EXPECT_EQ(columns("e\xcc\x81"), 1u);
  EXPECT_EQ(columns("😀"), 2u);
}

TEST(Columns, Survives_text_that_is_cut_in_a_character) {
  EXPECT_EQ(columns("\xe2\x82"), 1u);
}

TEST(CutToColumns, Cuts_at_a_character_and_says_so) {
  EXPECT_EQ(cut_to_columns("größe", 5), "größe");
  EXPECT_EQ(cut_to_columns("größer", 5), "größ…");
  EXPECT_EQ(cut_to_columns("試験試験", 4), "試…");
  EXPECT_EQ(cut_to_columns("abc", 0), "");
  EXPECT_EQ(cut_to_columns("abc", 1), "…");
}

}  // namespace
}  // namespace unflake
