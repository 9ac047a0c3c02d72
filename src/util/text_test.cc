#include "util/text.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Glob, Matches_the_whole_text) {
  EXPECT_TRUE(glob_match("Server.*", "Server.Push"));
  EXPECT_FALSE(glob_match("Server.*", "MyServer.Push"));
  EXPECT_TRUE(glob_match("*a*b*c", "xxaxxbxxbxc"));
  EXPECT_FALSE(glob_match("*a*b*c", "xxaxxbxxbx"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("**", ""));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_TRUE(glob_match("a?c", "abc"));
}

TEST(Glob, Takes_time_in_proportion_to_pattern_and_text) {
  const std::string pattern = "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(glob_match(pattern, std::string(2000, 'a')));
}

TEST(Nearest, Suggests_parts_and_misspellings_but_not_strangers) {
  const std::vector<std::string> names{"Server.Push", "Server.Pop", "Client.Connect"};
  EXPECT_EQ(nearest("Sever.Push", names, 3), (std::vector<std::string>{"Server.Push"}));
  EXPECT_EQ(nearest("connect", names, 3), (std::vector<std::string>{"Client.Connect"}));
  EXPECT_TRUE(nearest("Zebra", names, 3).empty());
}

TEST(Printable, Escapes_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(printable("a\nb"), "a\\nb");
  EXPECT_EQ(printable("a\nb", LineFeeds::keep), "a\nb");
  EXPECT_EQ(printable("tab\tstays"), "tab\tstays");
}

TEST(Printable, Keeps_text_and_escapes_bytes_that_are_not_text) {
  EXPECT_EQ(printable("größe €😀"), "größe €😀");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");           // cut short
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(EscapeSequences, Are_removed_whatever_their_kind) {
  EXPECT_EQ(without_escape_sequences("a\x1b[1;31mb\x1b[0m\x1b[K\x1b[?25l\x1b[38:5:1mc"), "abc");
  EXPECT_EQ(without_escape_sequences("\x1b]0;title\aa\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\"), "ab");
  EXPECT_EQ(without_escape_sequences("\x1b(Ba\x1b"
                                     "cb"),
            "ab");
  EXPECT_EQ(without_escape_sequences("größe\ttab"), "größe\ttab");
}

TEST(EscapeSequences, Lose_only_the_escape_where_they_do_not_end) {
  EXPECT_EQ(without_escape_sequences("\x1b[12\nnext"), "[12\nnext");
  EXPECT_EQ(without_escape_sequences("\x1b]0;title\nnext\a"), "]0;title\nnext\a");
  EXPECT_EQ(without_escape_sequences("end\x1b"), "end");
  EXPECT_EQ(without_escape_sequences("\x1b\nnext"), "\nnext");
  EXPECT_EQ(without_escape_sequences("\x1b\x1b[31mred"), "red");
}

TEST(Shorten, Never_cuts_a_character_in_two) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("€€€€", 8), "€…");
}

TEST(ShellQuote, Reads_back_as_one_word) {
  EXPECT_EQ(shell_quote("plain-word_1.0"), "plain-word_1.0");
  EXPECT_EQ(shell_quote("two words"), "'two words'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
}

TEST(SplitLines, Handles_a_missing_last_line_feed_and_carriage_returns) {
  EXPECT_EQ(split_lines("a\r\n\nb"), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_TRUE(split_lines("").empty());
}

}  // namespace
}  // namespace unflake
