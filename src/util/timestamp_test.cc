#include "util/time.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::system_clock::time_point noon(1'772'366'400s + 59'250'001us);

TEST(Timestamp, Is_in_universal_time_to_the_microsecond) {
  EXPECT_EQ(timestamp(noon), "2026-03-01T12:00:59.250001Z");
}

TEST(Timestamp, Cuts_what_is_not_asked_for) {
  EXPECT_EQ(timestamp_in_seconds(noon), "2026-03-01T12:00:59Z");
  EXPECT_EQ(timestamp_in_minutes(noon), "2026-03-01 12:00");
}

TEST(Timestamp, Knows_times_before_1970) {
  EXPECT_EQ(timestamp(std::chrono::system_clock::time_point(-1us)), "1969-12-31T23:59:59.999999Z");
}

}  // namespace
}  // namespace unflake
