#include <gtest/gtest.h>

#include <random>

#include "output/ci_log/ci_log.h"

namespace unflake {
namespace {

const std::string dashes(79, '-'), equals(79, '='), dots(79, '.');

const std::vector<std::string> scraps{
    "[ RUN      ] A.b\n",
    "[       OK ] A.b (0 ms)\n",
    "[  FAILED  ] A.b (1 ms)\n",
    "[  FAILED  ] A.b, where GetParam() = 3\n",
    "[  FAILED  ] 2 tests, listed below:\n",
    "[==========] Running 2 tests\n",
    "[==========] 2 tests ran.\n",
    "a.cc:12: Failure\nFailed\n",
    dashes + "\ntitle\n" + dashes + "\na.cc:1\n" + dots + "\n",
    "a.cc:3: FAILED:\n  CHECK( a )\n",
    "due to a fatal error condition:\n  SIGSEGV - x\n",
    equals + "\na.cc:3:\nTEST CASE:  b\n",
    "a.cc:6: ERROR: CHECK( a ) is NOT correct!\n",
    "[doctest] Status: FAILURE!\n",
    "a.cc(7): error: in \"x/y\": check a has failed\n",
    "unknown location(0): fatal error: in \"x\": signal: SIGSEGV\n",
    "*** 1 failure is detected in the test module \"x\"\n",
    "Test project /x\n",
    "    Start  3: name\n",
    "3: Test command: x\n",
    "3: Test timeout computed to be: 1\n",
    "3: ",
    "1/2 Test #3: name ....***Failed 0.1 sec\n",
    "1/2 Test #3: name ....   Passed 0.1 sec\n",
    "The following tests FAILED:\n",
    "\t 3 - name (Timeout)\n",
    "50% tests passed, 1 tests failed\n",
    "==================== Test output for //x:y:\n",
    std::string(80, '=') + "\n",
    "Segmentation fault\n",
    "Process completed with exit code 139.\n",
    "2024-05-01T12:00:00.1234567Z ",
    "[2024-05-01T12:00:00Z] ",
    "12:00:00 ",
    "svc-1  | ",
    "job\tstep\t",
    "##[group]",
    "\x1b[31m",
    "\x1b_bk;t=1\x07",
    "\r",
    "\r\n",
    "\n",
    " ",
    "\xff",
    "<testsuite>",
    "<testcase name='a' classname='b'>",
    "<failure message='",
    "'>",
    "</failure>",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "<system-out>"};

std::string random_log(std::mt19937& random) {
  std::string text = random() % 4 == 0 ? "<?xml version='1.0'?><testsuites>" : "";
  for (size_t pieces = random() % 80; pieces > 0; --pieces) {
    text += scraps[random() % scraps.size()];
    if (random() % 12 == 0 && !text.empty()) text.erase(random() % text.size(), random() % 9);
  }
  return text;
}

void expect_sane(const CiLog& log, const std::string& text) {
  for (const LoggedFailure& logged : log.failures) {
    EXPECT_LE(logged.test.size(), 500u) << text;
    EXPECT_LE(logged.line, log.lines) << text;
  }
}

TEST(HostileLog, Is_read_to_its_end_whatever_it_holds) {
  std::mt19937 random(20240501);
  unflake::Test test;
  test.id = {"x", "A.b"};
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_log(random);
    const auto log = read_ci_log(text);
    if (!log) continue;
    expect_sane(*log, text);
    (void)logged_failures_of(test, *log);
    (void)tests_named_in(*log, {test});
  }
}

TEST(HostileLog, Gives_no_more_failures_than_anybody_reads) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "[ RUN      ] A.b\na.cc:3: Failure\nFailed\n[  FAILED  ] A.b (0 ms)\n";
  const auto log = read_ci_log(text);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->failures.size(), most_logged_failures);
}

TEST(HostileLog, Is_read_where_a_line_is_very_long) {
  const auto log = read_ci_log("[ RUN      ] A." + std::string(4'000'000, 'b') +
                               "\na.cc:3: Failure\n" + std::string(4'000'000, 'c'));
  ASSERT_TRUE(log);
  ASSERT_EQ(log->failures.size(), 1u);
  EXPECT_LE(log->failures.front().test.size(), 500u);
}

}  // namespace
}  // namespace unflake
