#include <gtest/gtest.h>

#include "output/output_parsers.h"

namespace unflake {
namespace {

void expect_check(const std::string& text, const std::string& file, int line,
                  const std::string& message) {
  const auto found = plain_check_in({text});
  ASSERT_TRUE(found) << text;
  EXPECT_EQ(found->kind, FailureKind::assertion);
  EXPECT_EQ(found->file, file);
  EXPECT_EQ(found->line, line);
  EXPECT_EQ(found->message, message);
}

TEST(PlainChecks, Are_read_from_small_frameworks) {
  expect_check("dns/retry: \n  FAIL /src/test/dns.c:915: assert(a <= 500): 848 vs 500\n",
               "/src/test/dns.c", 915, "assert(a <= 500): 848 vs 500");
  expect_check("tests/spec.cpp:53:test_round_robin:FAIL: Expected 1 Was 0\n", "tests/spec.cpp", 53,
               "test_round_robin:FAIL: Expected 1 Was 0");
  expect_check("[   LINE   ] --- ../queue.c:12: error: Failure!\n", "../queue.c", 12,
               "error: Failure!");
  expect_check("Test push...  [ FAILED ]\n  queue.c:31: Check size == 2... failed\n", "queue.c", 31,
               "Check size == 2... failed");
  expect_check("queue.cpp(12): CHECK(a) is wrong\n", "queue.cpp", 12, "CHECK(a) is wrong");
}

TEST(PlainChecks, Are_read_from_Qt_Test) {
  expect_check(
      "FAIL!  : Server::stops() 'is_over' returned FALSE. ()\n   Loc: [../server.cpp(41)]\n",
      "../server.cpp", 41, "Server::stops() 'is_over' returned FALSE. ()");
}

TEST(PlainChecks, Are_read_where_file_and_line_are_spelled) {
  const auto found = plain_check_in(
      {"Failures:\n\n  * Assertion Failed\n  File: /src/queue.c\n  Line: 12\n  Test: size == 2\n"});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (Failure{FailureKind::assertion, "/src/queue.c", 12, "", "size == 2", ""}));
}

TEST(PlainChecks, Are_no_lines_of_logs_and_no_places_without_a_check) {
  EXPECT_FALSE(plain_check_in({"[info] server.cc:12 accept failed, once more\n"}));
  EXPECT_FALSE(plain_check_in({"2024-01-02 10:00:00 server.cc:12 failed\n"}));
  EXPECT_FALSE(plain_check_in({"queue.cc:12:5: error: expected ';' before 'return'\n"}));
  EXPECT_FALSE(plain_check_in({"reading queue.c:12\n"}));
  EXPECT_FALSE(plain_check_in({"FAIL at 10:30:12\n"}));
  EXPECT_FALSE(plain_check_in({"queue.c:99999999999999: failed\n"}));
  EXPECT_FALSE(plain_check_in({""}));
}

}  // namespace
}  // namespace unflake
