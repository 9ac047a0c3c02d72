#include "app/options.h"

#include <gtest/gtest.h>

#include "util/time.h"

namespace unflake {
namespace {

TEST(Times, Are_dates_or_times_of_UTC) {
  const auto text_of = [](const char* text) { return timestamp_in_seconds(*parse_time(text)); };
  EXPECT_EQ(text_of("2026-03-01"), "2026-03-01T00:00:00Z");
  EXPECT_EQ(text_of("2026-03-01 12:34"), "2026-03-01T12:34:00Z");
  EXPECT_EQ(text_of("2026-03-01T12:34:56Z"), "2026-03-01T12:34:56Z");
  EXPECT_EQ(text_of("2024-02-29"), "2024-02-29T00:00:00Z");
}

TEST(Times, What_is_none_is_told) {
  for (const char* text :
       {"", "yesterday", "2026-02-30", "2026-13-01", "26-03-01", "2026-03-01T25:00", "2026-03-01x",
        "2026-03-0", "2026-03--1", "9999-01-01"})
    EXPECT_FALSE(parse_time(text)) << text;
}

}  // namespace
}  // namespace unflake
