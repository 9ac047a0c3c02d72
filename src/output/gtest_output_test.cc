#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

Failure only_gtest_failure(std::string_view text) {
  const auto failures = parse_gtest_failures(text);
  EXPECT_EQ(failures.size(), 1u);
  return failures.empty() ? Failure{} : failures.front();
}

void expect_check(const Failure& failure, int line, std::string_view expression,
                  std::string_view message) {
  EXPECT_EQ(failure.kind, FailureKind::assertion);
  EXPECT_EQ(failure.file, "net/server_test.cc");
  EXPECT_EQ(failure.line, line);
  EXPECT_EQ(failure.expression, expression);
  EXPECT_EQ(failure.message, message);
}

TEST(GtestOutput, Reads_equality_values_and_the_authors_text) {
  expect_check(only_gtest_failure(R"([ RUN      ] Server.equality
net/server_test.cc:8: Failure
Expected equality of these values:
  got
    Which is: 1
  2
after 12ms the server
had nothing
[  FAILED  ] Server.equality (0 ms)
)"),
               8, "got == 2", "  Which is: 1\nafter 12ms the server\n  had nothing");
}

TEST(GtestOutput, Reads_equality_with_a_diff) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:8: Failure
Expected equality of these values:
  m
    Which is: "a\nb\nc"
  "a\nx\nc"
With diff:
@@ -1,3 +1,3 @@
 a
-b
+x
 c

lines differ
[  FAILED  ] Server.equality (0 ms)
)"),
               8, R"(m == "a\nx\nc")",
               "  Which is: \"a\\nb\\nc\"\n  With diff:\n  @@ -1,3 +1,3 @@\n  a\n  -b\n  +x\n  c\n"
               "lines differ");
}

TEST(GtestOutput, Reads_a_boolean) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:9: Failure
Value of: ok
  Actual: false
Expected: true
timeout
)"),
               9, "ok", "  Actual: false\n  Expected: true\ntimeout");
}

TEST(GtestOutput, Takes_the_text_of_an_assertion_result_for_the_authors) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:37: Failure
Value of: f(3)
  Actual: false (3 is odd)
Expected: true
)"),
               37, "f(3)", "3 is odd\n  Actual: false (3 is odd)\n  Expected: true");
}

TEST(GtestOutput, Reads_a_comparison) {
  expect_check(only_gtest_failure("net/server_test.cc:10: Failure\n"
                                  "Expected: (a) < (b), actual: 3 vs 2\n"),
               10, "(a) < (b)", "  3 vs 2");
}

TEST(GtestOutput, Reads_a_difference) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:10: Failure
The difference between 1.0 and 2.0 is 1, which exceeds 0.5, where
1.0 evaluates to 1,
2.0 evaluates to 2, and
0.5 evaluates to 0.5.
)"),
               10, "1.0 and 2.0 differ by at most 0.5",
               "  1.0 evaluates to 1,\n  2.0 evaluates to 2, and\n  0.5 evaluates to 0.5.");
}

TEST(GtestOutput, Reads_a_matcher) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:11: Failure
Value of: v
Expected: has 2 elements where
element #0 is equal to 1,
element #1 is equal to 3
  Actual: { 1, 2 }, whose element #1 doesn't match
user says
)"),
               11, "v",
               "  Expected: has 2 elements where\n  element #0 is equal to 1,\n"
               "  element #1 is equal to 3\n"
               "  Actual: { 1, 2 }, whose element #1 doesn't match\nuser says");
}

TEST(GtestOutput, Reads_a_predicate) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:37: Failure
same(1, 2) evaluates to false, where
1 evaluates to 1
2 evaluates to 2
)"),
               37, "same(1, 2)", "  1 evaluates to 1\n  2 evaluates to 2");
}

TEST(GtestOutput, Reads_an_explicit_failure) {
  expect_check(only_gtest_failure("net/server_test.cc:12: Failure\nFailed\nit broke\nbadly\n"), 12,
               "", "it broke\n  badly");
}

TEST(GtestOutput, Reads_an_expected_exception) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:16: Failure
Expected: f() throws an exception of type std::runtime_error.
  Actual: it throws nothing.
)"),
               16, "f() throws an exception of type std::runtime_error",
               "Actual: it throws nothing.");
}

TEST(GtestOutput, Reads_a_death_test) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:27: Failure
Death test: abort()
    Result: died but not with expected error.
  Expected: contains regular expression "boom"
Actual msg:
[  DEATH   ] something else 17
)"),
               27, "Death test: abort()",
               "Result: died but not with expected error.\n"
               "Expected: contains regular expression \"boom\"\nActual msg:\n"
               "  [  DEATH   ] something else 17");
}

TEST(GtestOutput, Reads_an_uncaught_exception) {
  const Failure failure = only_gtest_failure(R"(unknown file: Failure
C++ exception with description "disk full 12" thrown in the test body.
[  FAILED  ] Server.throws (0 ms)
)");
  EXPECT_EQ(failure.kind, FailureKind::exception);
  EXPECT_EQ(failure.file, "");
  EXPECT_EQ(failure.message, "\"disk full 12\" thrown in the test body.");
}

TEST(GtestOutput, Reads_mock_failures) {
  const auto failures = parse_gtest_failures(R"(unknown file: Failure

Unexpected mock function call - returning default value.
    Function call: bar(6)
          Returns: 0
Google Mock tried the following 1 expectation, but it didn't match:

net/server_test.cc:32: EXPECT_CALL(m, bar(5))...
  Expected arg #0: is equal to 5
           Actual: 6
net/server_test.cc:31: Failure
Actual function call count doesn't match EXPECT_CALL(m, bar(5))...
         Expected: to be called twice
           Actual: never called - unsatisfied and active
[  FAILED  ] Server.mock (0 ms)
)");
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].expression, "bar");
  EXPECT_EQ(failures[1].expression, "EXPECT_CALL(m, bar(5))");
  EXPECT_EQ(failures[1].line, 31);
}

TEST(GtestOutput, Leaves_scoped_traces_out) {
  expect_check(only_gtest_failure(R"(net/server_test.cc:22: Failure
Expected equality of these values:
  1
  2
hello
Google Test trace:
net/server_test.cc:21: outer
net/server_test.cc:20: loop 3
[  FAILED  ] Server.traced (0 ms)
)"),
               22, "1 == 2", "hello");
}

TEST(GtestOutput, Does_not_take_the_programs_log_for_the_authors_text) {
  for (const char* log :
       {"[2024-01-02 10:00:00] stopped", "[info] stopped", "INFO: stopped", "12:00:01 stopped",
        "I0102 12:00:00.123456 77 server.cc:9] stopped", "{\"event\": \"stopped\"}"}) {
    const Failure failure = only_gtest_failure(
        std::string("net/server_test.cc:9: Failure\nExpected: (a) < (b), actual: 3 vs 2\n") + log);
    EXPECT_EQ(failure.message, std::string("  3 vs 2\n  ") + log);
  }
}

TEST(GtestOutput, Finds_a_failure_behind_output_without_a_line_feed) {
  const Failure failure =
      only_gtest_failure("waiting... net/server_test.cc:41: Failure\nFailed\nno answer\n");
  EXPECT_EQ(failure.file, "net/server_test.cc");
  EXPECT_EQ(failure.line, 41);
}

TEST(GtestOutput, Keeps_all_failures_in_order_up_to_a_bound) {
  std::string text;
  for (int i = 1; i <= 200; ++i)
    text += "server_test.cc:" + std::to_string(i) + ": Failure\nFailed\n";
  const auto failures = parse_gtest_failures(text);
  ASSERT_EQ(failures.size(), most_failures);
  EXPECT_EQ(failures.front().line, 1);
  EXPECT_EQ(failures.back().line, static_cast<int>(most_failures));
}

TEST(GtestOutput, Sees_no_failure_where_none_is) {
  EXPECT_TRUE(
      parse_gtest_failures("[       OK ] Server.ok (0 ms)\nnot a place: Failure\n").empty());
}

}  // namespace
}  // namespace unflake
