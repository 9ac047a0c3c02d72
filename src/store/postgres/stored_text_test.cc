#include "store/postgres/pg_connection.h"

#include <gtest/gtest.h>

#include <random>

namespace unflake {
namespace {

TEST(StoredText, Leaves_ordinary_names_alone) {
  for (const std::string name : {"Suite.Case/0", "C:\\path %20 'quoted' \"twice\"",
                                 "größe_日本_🙂", "\t tab and\nline feed \x7f"})
    EXPECT_EQ(to_stored_text(name), name);
}

TEST(StoredText, Escapes_what_text_cannot_hold) {
  EXPECT_EQ(to_stored_text(std::string("a\0b", 3)),
            "a\x1a"
            "00b");
  EXPECT_EQ(to_stored_text("\xff"),
            "\x1a"
            "ff");
  EXPECT_EQ(to_stored_text("\x1a"),
            "\x1a"
            "1a");
}

TEST(StoredText, Takes_no_overlong_surrogate_or_truncated_sequence_for_a_character) {
  for (const std::string bytes : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                  "\xf0\x9f\x99", "\xe2\x82", "\xc3", "\x80"})
    EXPECT_EQ(to_stored_text(bytes).size(), 3 * bytes.size());
}

TEST(StoredText, Gives_any_bytes_back) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(from_stored_text(to_stored_text(bytes)), bytes);
  }
}

TEST(StoredText, Reads_a_damaged_escape_as_it_stands) {
  EXPECT_EQ(from_stored_text("\x1a"), "\x1a");
  EXPECT_EQ(from_stored_text("\x1a"
                             "0"),
            "\x1a"
            "0");
  EXPECT_EQ(from_stored_text("\x1a"
                             "zz"),
            "\x1a"
            "zz");
}

}  // namespace
}  // namespace unflake
