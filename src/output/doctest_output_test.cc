#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

TEST(DoctestOutput, Reads_checks_values_and_logged_text) {
  const auto failures = parse_doctest_failures(R"(
queue.cc:6: ERROR: CHECK( a==b ) is NOT correct!
  values: CHECK( 1 == 2 )

queue.cc:7: FATAL ERROR: REQUIRE( a==b ) is NOT correct!
  values: REQUIRE( 1 == 2 )
  logged: loop 7
          a := 1
          user text 5

===============================================================================
)");
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0], (Failure{FailureKind::assertion, "queue.cc", 6, "", "CHECK( a==b )",
                                  "  values: CHECK( 1 == 2 )"}));
  EXPECT_EQ(failures[1], (Failure{FailureKind::assertion, "queue.cc", 7, "", "REQUIRE( a==b )",
                                  "  values: REQUIRE( 1 == 2 )\nloop 7\n  a := 1\nuser text 5"}));
}

TEST(DoctestOutput, Reads_places_in_parentheses) {
  const auto failures =
      parse_doctest_failures("src/queue.cc(12): ERROR: CHECK( ok ) is NOT correct!\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].file, "src/queue.cc");
  EXPECT_EQ(failures[0].line, 12);
}

TEST(DoctestOutput, Reads_an_explicit_failure) {
  const auto failures = parse_doctest_failures("queue.cc:7: FATAL ERROR: it broke\nbadly\n\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0],
            (Failure{FailureKind::assertion, "queue.cc", 7, "", "", "it broke\nbadly"}));
}

TEST(DoctestOutput, Reads_exceptions) {
  const auto failures = parse_doctest_failures(R"(
queue.cc:8: ERROR: test case THREW exception: disk full

queue.cc:11: ERROR: CHECK( f()==1 ) THREW exception: "bad"

queue.cc:11: ERROR: CHECK_THROWS_AS( (void)0, std::runtime_error ) did NOT throw at all!

queue.cc:11: ERROR: CHECK_THROWS_AS( f(), int ) threw a DIFFERENT exception: "bad"
)");
  ASSERT_EQ(failures.size(), 4u);
  EXPECT_EQ(failures[0], (Failure{FailureKind::exception, "queue.cc", 8, "", "", "disk full"}));
  EXPECT_EQ(failures[1],
            (Failure{FailureKind::exception, "queue.cc", 11, "", "CHECK( f()==1 )", "\"bad\""}));
  EXPECT_EQ(failures[2].message, "did NOT throw at all!");
  EXPECT_EQ(failures[3].message, "threw a DIFFERENT exception: \"bad\"");
}

TEST(DoctestOutput, Reads_a_crash) {
  const auto failures = parse_doctest_failures(
      "queue.cc:13: FATAL ERROR: test case CRASHED: SIGSEGV - Segmentation violation signal\n\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0], (Failure{FailureKind::signal, "queue.cc", 13, "", "",
                                  "SIGSEGV - Segmentation violation signal"}));
}

TEST(DoctestOutput, Ignores_warnings_and_messages) {
  EXPECT_TRUE(parse_doctest_failures(R"(queue.cc:12: WARNING: WARN( false ) is NOT correct!
  values: WARN( false )

queue.cc:12: MESSAGE: note

Allowed to fail so marking it as not failed
)")
                  .empty());
}

TEST(DoctestOutput, Reads_decorators_that_fail_a_test) {
  const auto failures = parse_doctest_failures(R"(
Should have failed but didn't! Marking it as failed!
Test case exceeded time limit of 0.010000!
)");
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].kind, FailureKind::unexpected_pass);
  EXPECT_EQ(failures[1].kind, FailureKind::timeout);
}

}  // namespace
}  // namespace unflake
