#include "races.h"

#include <gtest/gtest.h>

namespace unflake::eval {
namespace {

const RacingLines seats_race{{"seats.c:11", "seats.c:13"}}, no_race;

constexpr const char* report = R"(==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 4 at 0x01 by thread T2:
    #0 std::swap /usr/include/c++/12/bits/move.h:206 (seats+0x1)
    #1 sell /src/zoo/interleavings/seats.c:13 (seats+0x2)

  Previous read of size 4 at 0x01 by thread T1:
    #0 sell /src/zoo/interleavings/seats.c:11 (seats+0x3)

  Location is global 'next' of size 4 at 0x01 (seats+0x4)

  Thread T2 (tid=9, running) created by main thread at:
    #0 pthread_create <null> (libtsan.so.2+0x5)
    #1 main /src/zoo/interleavings/seats.c:20 (seats+0x6)

SUMMARY: ThreadSanitizer: data race /src/zoo/interleavings/seats.c:13 in sell
==================
)";

TEST(RacesOfTsan, Are_the_innermost_places_of_the_program_in_the_first_two_stacks) {
  EXPECT_EQ(races_of_tsan(report, "/interleavings/"), seats_race);
  EXPECT_EQ(races_of_tsan(std::string(report) + report, "/interleavings/"), seats_race);
}

TEST(RacesOfTsan, Other_warnings_and_other_places_are_none) {
  EXPECT_EQ(races_of_tsan(report, "/elsewhere/"), no_race);
  EXPECT_EQ(
      races_of_tsan("WARNING: ThreadSanitizer: thread leak (pid=7)\n"
                    "    #0 a /zoo/interleavings/a.c:1\n\n    #0 a /zoo/interleavings/a.c:2\n",
                    "/interleavings/"),
      no_race);
}

TEST(RacesOfUnflake, Are_read_from_JSON) {
  constexpr const char* json = R"({"races": [{"accesses": [
    {"stack": [{"file": "/usr/include/x.h", "line": 1}, {"file": "/zoo/interleavings/b.c", "line": 2}]},
    {"stack": [{"file": "/zoo/interleavings/a.c", "line": 3}]}]}]})";
  EXPECT_EQ(races_of_unflake(json, "/interleavings/"), (RacingLines{{"a.c:3", "b.c:2"}}));
  EXPECT_EQ(races_of_unflake("nonsense", "/interleavings/"), no_race);
}

TEST(RaceScores, Count_what_both_list_and_accused_sound_programs) {
  MeasuredRaces seats{"seats", false, {{"a:1", "a:5"}, {"a:1", "a:9"}}, {{"a:1", "a:6"}}};
  MeasuredRaces sound{"sound", true, {}, {{"b:1", "b:1"}}};
  const auto scores = race_scores({seats, sound});
  EXPECT_EQ(scores[0].measured, "1 of 2");
  EXPECT_FALSE(scores[0].met);
  EXPECT_EQ(scores[1].measured, "1 of 1");
  EXPECT_FALSE(scores[1].met);
  EXPECT_NE(races_section({seats, sound}, {}, {}).find("a:1 and a:9"), std::string::npos);
}

}  // namespace
}  // namespace unflake::eval
