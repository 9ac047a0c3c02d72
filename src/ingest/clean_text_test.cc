#include "ingest/report_reader.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

std::string cleaned(std::string_view text, size_t piece) {
  TextCleaner cleaner;
  std::string out;
  for (size_t at = 0; at < text.size(); at += piece)
    cleaner.clean(text.substr(at, piece), at + piece >= text.size(), out);
  return out;
}

TEST(TextCleaner, Cuts_between_pieces_change_nothing) {
  const std::string text =
      "plain \xC3\xB6 \xE8\xA9\xA6 \xF0\x9F\x98\x80 &amp; &#65; &#27; &#x1b; &#xD800; & &# &#x; "
      "&#12345678901234567890; \xFF \xC3( \xE8\xA9 \xF0\x9F \xED\xA0\x80 \xC0\x80 \x01\x7F\r\n\t&#";
  const std::string whole = cleaned(text, text.size());
  for (size_t piece = 1; piece < text.size(); ++piece)
    EXPECT_EQ(cleaned(text, piece), whole) << piece;
}

TEST(TextCleaner, Keeps_what_XML_can_hold) {
  const std::string text = "a\tb\r\n\xC3\xB6\xF0\x9F\x98\x80&lt;&#x1F600;&#10;";
  EXPECT_EQ(cleaned(text, text.size()), text);
}

TEST(TextCleaner, Replaces_what_XML_cannot_hold) {
  EXPECT_EQ(cleaned("a\x1B[m", 9), "a\xEF\xBF\xBD[m");
  EXPECT_EQ(cleaned("&#0;&#x1b;&#xFFFF;", 99), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(cleaned("\xED\xA0\x80", 9), "\xEF\xBF\xBD");
  EXPECT_EQ(cleaned("\xC3", 9), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace unflake
