#include "patch/literals/literal_parts.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

double value_of(std::string_view text) {
  const auto number = number_at_start(text);
  return number ? number->value : -1;
}

std::string reshaped(std::string_view text, double value) {
  return in_the_shape_of(number_at_start(text).value(), value);
}

TEST(NumberText, Numbers_of_all_shapes_have_their_value) {
  EXPECT_EQ(value_of("200)"), 200);
  EXPECT_EQ(value_of("0"), 0);
  EXPECT_EQ(value_of("200'000;"), 200000);
  EXPECT_EQ(value_of("0xc8"), 200);
  EXPECT_EQ(value_of("0b11"), 3);
  EXPECT_EQ(value_of("0310"), 200);
  EXPECT_EQ(value_of("0.5s"), 0.5);
  EXPECT_EQ(value_of(".25"), .25);
  EXPECT_EQ(value_of("2e-3"), 2e-3);
  EXPECT_EQ(value_of("1-2"), 1);
}

TEST(NumberText, A_suffix_ends_where_the_word_ends) {
  const auto number = number_at_start("200ms)");
  ASSERT_TRUE(number);
  EXPECT_EQ(number->suffix, "ms");
  EXPECT_EQ(number->length, 5u);
}

TEST(NumberText, What_is_no_number_is_none) {
  for (const char* text : {"", "x", "-1", "0x", "0b", "1.2.3"})
    EXPECT_FALSE(number_at_start(text)) << text;
}

TEST(NumberText, Another_number_keeps_the_shape) {
  EXPECT_EQ(reshaped("200ms", 53), "53ms");
  EXPECT_EQ(reshaped("200'000u", 1234567), "1'234'567u");
  EXPECT_EQ(reshaped("200'000", 53), "53");
  EXPECT_EQ(reshaped("0xc8", 53), "53");
  EXPECT_EQ(reshaped("0.5s", 0.053), "0.053s");
  EXPECT_EQ(reshaped("0.5f", 2), "2.0f");
  EXPECT_EQ(reshaped("0.3", 0.1 + 0.2), "0.3");
}

}  // namespace
}  // namespace unflake
