#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

Failure only_boost_failure(std::string_view text) {
  const auto failures = parse_boost_failures(text);
  EXPECT_EQ(failures.size(), 1u);
  return failures.empty() ? Failure{} : failures.front();
}

Failure check(std::string expression, std::string message) {
  return {FailureKind::assertion, "queue.cc", 7, "", std::move(expression), std::move(message)};
}

TEST(BoostOutput, Reads_checks_and_their_values) {
  EXPECT_EQ(only_boost_failure("queue.cc(7): error: in \"su/a\": check a==b has failed\n"),
            check("a==b", ""));
  EXPECT_EQ(
      only_boost_failure("queue.cc(7): error: in \"su/a\": check a == b has failed [1 != 2]\n"),
      check("a == b", "  [1 != 2]"));
  EXPECT_EQ(only_boost_failure(
                "queue.cc(7): fatal error: in \"su/a\": critical check a == b has failed [1 != 2]"),
            check("a == b", "  [1 != 2]"));
}

TEST(BoostOutput, Reads_tolerances_without_their_values) {
  EXPECT_EQ(
      only_boost_failure("queue.cc(7): error: in \"su/a\": difference{0.1} between 1.0{1} and "
                         "1.1{1.1000000000000001} exceeds 0.1%\n")
          .expression,
      "difference between 1.0 and 1.1 exceeds 0.1%");
}

TEST(BoostOutput, Reads_the_authors_text) {
  EXPECT_EQ(only_boost_failure("queue.cc(7): error: in \"su/a\": own words\n"),
            check("", "own words"));
}

TEST(BoostOutput, Shows_context_and_mismatches) {
  EXPECT_EQ(
      only_boost_failure(R"(queue.cc(7): error: in "su/a": check a==b has failed [1 != 2]
Failure occurred in a following context:
    ctx 3
    outer
server stopped
)"),
      check("a==b", "  [1 != 2]\n  Failure occurred in a following context:\n  ctx 3\n  outer"));
  EXPECT_EQ(only_boost_failure(R"(queue.cc(7): error: in "su/a": check v==w has failed
  - mismatch at position 1: [2 == 3] is false
)"),
            check("v==w", "  - mismatch at position 1: [2 == 3] is false"));
}

TEST(BoostOutput, Places_an_exception_at_the_last_checkpoint) {
  EXPECT_EQ(
      only_boost_failure(
          R"(unknown location(0): fatal error: in "su/throws": std::runtime_error: disk full
queue.cc(9): last checkpoint: here
)"),
      (Failure{FailureKind::exception, "queue.cc", 9, "", "", "std::runtime_error: disk full"}));
}

TEST(BoostOutput, Reads_what_a_boost_exception_carries) {
  const Failure failure = only_boost_failure(
      R"(unknown location(0): fatal error: in "a": Throw location unknown (consider using BOOST_THROW_EXCEPTION)
Dynamic exception type: boost::wrapexcept<std::runtime_error>
std::exception::what: disk full
queue.cc(9): last checkpoint
)");
  EXPECT_EQ(failure.kind, FailureKind::exception);
  EXPECT_EQ(failure.line, 9);
  EXPECT_TRUE(failure.message.ends_with("std::exception::what: disk full"));
}

TEST(BoostOutput, Reads_signals) {
  EXPECT_EQ(
      only_boost_failure(
          R"(unknown location(0): fatal error: in "segv": memory access violation at address: 0x00000000: no mapping at fault address
queue.cc(4): last checkpoint: "segv" test entry
)"),
      (Failure{FailureKind::signal, "queue.cc", 4, "", "",
               "memory access violation at address: 0x00000000: no mapping at fault address"}));
  EXPECT_EQ(
      only_boost_failure(
          R"(unknown location(0): fatal error: in "abrt": signal: SIGABRT (application abort requested)
queue.cc(5): last checkpoint
)"),
      (Failure{FailureKind::signal, "queue.cc", 5, "", "",
               "SIGABRT (application abort requested)"}));
}

TEST(BoostOutput, Reads_its_own_time_limit) {
  EXPECT_EQ(
      only_boost_failure(
          R"(unknown location(0): fatal error: in "su/to": signal: SIGALRM (timeout while executing function)
)")
          .kind,
      FailureKind::timeout);
}

TEST(BoostOutput, Keeps_the_values_of_a_small_number_out_of_the_expression) {
  const auto failures = parse_boost_failures(
      "a.cc(9): error: in \"small\": absolute value of v{-0.00123456} exceeds 1e-06\n");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].expression, "absolute value of v exceeds 1e-06");
}

TEST(BoostOutput, Is_told_without_the_progress_that_unflake_asked_for) {
  EXPECT_EQ(without_boost_progress("Running 1 test case...\nEntering test module \"m\"\n"
                                   "/a b/a.cc(3): Test case \"x\" is skipped because disabled\n"
                                   "a.cc(5): Entering test case \"y\"\nsaid: Entering test case\n"
                                   "a.cc(6): error: in \"y\": check z has failed\n"
                                   "a.cc(5): Leaving test case \"y\"; testing time: 4us\r\n"
                                   "Leaving test module \"m\"; testing time: 9us\n\nno feed"),
            "Running 1 test case...\nsaid: Entering test case\n"
            "a.cc(6): error: in \"y\": check z has failed\n\nno feed");
  EXPECT_EQ(without_boost_progress(""), "");
}

}  // namespace
}  // namespace unflake
