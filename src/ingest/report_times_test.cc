#include "ingest/report_reader.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

TEST(ReportTimes, Seconds_are_read_in_the_forms_that_tools_write) {
  EXPECT_EQ(parse_seconds("0.25").duration, Duration(250'000));
  EXPECT_EQ(parse_seconds(" 1 ").duration, Duration(1'000'000));
  EXPECT_EQ(parse_seconds("8.1e-05").duration, Duration(81));
  EXPECT_EQ(parse_seconds("1,234.5").duration, Duration(1'234'500'000));
  EXPECT_EQ(parse_seconds("1,234").duration, Duration(1'234'000'000));
  EXPECT_EQ(parse_seconds("0,005").duration, Duration(5'000));
  EXPECT_EQ(parse_seconds("12,5").duration, Duration(12'500'000));
  EXPECT_EQ(parse_seconds("3s").duration, Duration(3'000'000));
  EXPECT_FALSE(parse_seconds("").is_odd);
  EXPECT_EQ(parse_seconds("").duration, unknown_duration);
}

TEST(ReportTimes, Odd_durations_become_ones_that_a_test_can_have) {
  for (const char* odd : {"-1", "nan", "inf", "1e400", "abc", "1e30", "0x10"}) {
    const ReportedTime time = parse_seconds(odd);
    EXPECT_TRUE(time.is_odd) << odd;
    EXPECT_GE(time.duration, Duration(0)) << odd;
    EXPECT_LE(time.duration, std::chrono::days(30)) << odd;
  }
}

TEST(ReportTimes, Timestamps_without_a_zone_are_UTC) {
  const auto noon = parse_report_timestamp("2026-03-01T12:00:00Z");
  ASSERT_TRUE(noon);
  EXPECT_EQ(noon->time_since_epoch(), std::chrono::seconds(1772366400));
  EXPECT_EQ(parse_report_timestamp("2026-03-01T12:00:00"), noon);
  EXPECT_EQ(parse_report_timestamp("2026-03-01T14:00:00+02:00"), noon);
  EXPECT_EQ(parse_report_timestamp("2026-03-01T06:30:00.000-0530"), noon);
  EXPECT_EQ(parse_report_timestamp("2026-03-01 12:00:00.25"),
            *noon + std::chrono::milliseconds(250));
}

TEST(ReportTimes, Other_texts_are_no_timestamps) {
  for (const char* text : {"", "yesterday", "2026-13-01T00:00:00", "1970-01-01T00:00:00",
                           "2026-03-01T25:00:00", "2026-03-01T12:00:00 CET", "9999-01-01T00:00:00",
                           "2026-03-01T12", "2026-03-01T12:00:00+99:00", "-026-03-01T12:00:00"})
    EXPECT_FALSE(parse_report_timestamp(text)) << text;
  EXPECT_FALSE(parse_epoch_seconds("-5"));
  EXPECT_FALSE(parse_epoch_seconds("99999999999999999999"));
}

}  // namespace
}  // namespace unflake
