#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

constexpr std::string_view summary =
    "===============================================================================\n"
    "test cases: 1 | 1 failed\n"
    "assertions: 2 | 2 failed\n\n";

std::vector<Failure> parse(std::string text) {
  return parse_catch2_failures(text + "\n" + std::string(summary));
}

TEST(Catch2Output, Reads_expression_expansion_and_messages) {
  const auto failures = parse(R"(
-------------------------------------------------------------------------------
equality
-------------------------------------------------------------------------------
tests/queue.cc:3
...............................................................................

tests/queue.cc:4: FAILED:
  CHECK( a==b )
with expansion:
  1 == 2

tests/queue.cc:5: FAILED:
  REQUIRE( a+1==b+1 )
with expansion:
  2 == 3
with messages:
  loop 7
  a := 1
)");
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0], (Failure{FailureKind::assertion, "tests/queue.cc", 4, "", "CHECK( a==b )",
                                  "  1 == 2"}));
  EXPECT_EQ(failures[1], (Failure{FailureKind::assertion, "tests/queue.cc", 5, "",
                                  "REQUIRE( a+1==b+1 )", "  2 == 3\nloop 7\n  a := 1"}));
}

TEST(Catch2Output, Reads_an_explicit_failure) {
  const auto failures = parse(R"(queue.cc:5: FAILED:
explicitly with message:
  it broke
  badly
)");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].kind, FailureKind::assertion);
  EXPECT_EQ(failures[0].message, "it broke\nbadly");
}

TEST(Catch2Output, Reads_an_exception_of_the_test_and_of_a_check) {
  const auto failures = parse(R"(queue.cc:7: FAILED:
  {Unknown expression after the reported line}
due to unexpected exception with messages:
  before
  disk full

queue.cc:8: FAILED:
  CHECK( f()==1 )
due to unexpected exception with message:
  bad
)");
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0],
            (Failure{FailureKind::exception, "queue.cc", 7, "", "", "before\ndisk full"}));
  EXPECT_EQ(failures[1],
            (Failure{FailureKind::exception, "queue.cc", 8, "", "CHECK( f()==1 )", "bad"}));
}

TEST(Catch2Output, Reads_a_missing_exception) {
  const auto failures = parse(R"(queue.cc:9: FAILED:
  CHECK_THROWS( f() )
because no exception was thrown where one was expected:
)");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].message, "because no exception was thrown where one was expected");
}

TEST(Catch2Output, Reads_a_fatal_signal) {
  const auto failures = parse(R"(queue.cc:11: FAILED:
  {Unknown expression after the reported line}
due to a fatal error condition:
  a note
  SIGSEGV - Segmentation violation signal
)");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0], (Failure{FailureKind::signal, "queue.cc", 11, "", "",
                                  "SIGSEGV - Segmentation violation signal"}));
}

TEST(Catch2Output, Joins_words_that_the_reporter_broke) {
  const std::string a(75, 'a');
  const auto failures =
      parse("queue.cc:19: FAILED:\nexplicitly with message:\n  \"" + a + "-\n  aaa\"\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].message, "\"" + a + "aaa\"");
}

TEST(Catch2Output, Ignores_warnings_and_passes) {
  EXPECT_TRUE(parse(R"(queue.cc:17: warning:
  careful

queue.cc:17: PASSED:
  CHECK( 1==1 )

queue.cc:19: FAILED - but was ok:
  CHECK_NOFAIL( false )
)")
                  .empty());
}

TEST(Catch2Output, Reads_a_test_case_without_assertions) {
  const auto failures = parse("\nNo assertions in test case 'none'\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].message, "No assertions in test case 'none'");
}

TEST(Catch2Output, Reads_a_pass_of_a_test_tagged_to_fail) {
  const auto failures = parse_catch2_failures(
      "===============================================================================\n"
      "test cases: 1 | 1 failed\nassertions: 1 | 1 passed\n\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].kind, FailureKind::unexpected_pass);
}

}  // namespace
}  // namespace unflake
