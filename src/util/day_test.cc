#include "util/time.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(Days, Are_written_as_they_were_read) {
  for (const char* text : {"2026-03-01", "2024-02-29", "1970-01-01", "0001-01-01"}) {
    const auto day = parse_day(text);
    ASSERT_TRUE(day) << text;
    EXPECT_EQ(format_day(*day), text);
  }
}

TEST(Days, That_no_calendar_has_are_none) {
  for (const char* text : {"", "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "01.03.2026",
                           "2026-03-01T00:00", "2026-03-1x", " 2026-03-01"})
    EXPECT_FALSE(parse_day(text)) << text;
}

TEST(Days, Begin_at_midnight_in_UTC) {
  const auto noon = std::chrono::system_clock::time_point(std::chrono::seconds(1'772'366'400));
  EXPECT_EQ(format_day(day_of(noon)), "2026-03-01");
}

}  // namespace
}  // namespace unflake
