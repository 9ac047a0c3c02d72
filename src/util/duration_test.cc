#include "util/time.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, Reads_numbers_with_units) {
  EXPECT_EQ(*parse_duration("80us"), 80us);
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(*parse_duration("5m"), 5min);
  EXPECT_EQ(*parse_duration("2 h"), 2h);
  EXPECT_EQ(*parse_duration("3"), 3s);
}

TEST(ParseDuration, Refuses_everything_else) {
  for (const char* text : {"", "s", "-1s", "5 parsecs", "nan", "inf", "1e300s", "1s2"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(FormatDuration, Shows_three_digits_in_the_unit_that_reads_best) {
  EXPECT_EQ(format_duration(80us), "80 us");
  EXPECT_EQ(format_duration(12345us), "12.3 ms");
  EXPECT_EQ(format_duration(4560ms), "4.56 s");
  EXPECT_EQ(format_duration(200s), "3m 20s");
  EXPECT_EQ(format_duration(2h + 5min), "2h 05m");
}

}  // namespace
}  // namespace unflake
