#include "output/ci_log/ci_log.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

LoggedFailure only_junit_failure(const std::string& cases) {
  const auto log = read_ci_log("<?xml version=\"1.0\"?><testsuites><testsuite name=\"x\">" + cases +
                               "</testsuite></testsuites>");
  EXPECT_TRUE(log) << to_string(log.error());
  if (!log || log->failures.size() != 1) return ADD_FAILURE() << "not one failure", LoggedFailure{};
  return log->failures.front();
}

void expect_failure(const LoggedFailure& logged, std::string_view test, std::string_view line) {
  EXPECT_EQ(logged.test, test);
  ASSERT_FALSE(logged.failures.empty());
  EXPECT_EQ(headline(logged.failures.front()), line);
}

TEST(JunitLog, Reads_a_failure_of_googletest) {
  expect_failure(
      only_junit_failure("<testcase name='Stops/0' classname='All/Server'>"
                         "<failure message='a.cc:8&#x0A;Value of: ok' type=''><![CDATA[a.cc:8\n"
                         "Value of: ok\n  Actual: false\nExpected: true]]></failure>"
                         "</testcase><testcase name='Starts' classname='All/Server'/>"),
      "All/Server.Stops/0", "a.cc:8: ok");
}

TEST(JunitLog, Reads_a_message_of_catch2) {
  const LoggedFailure logged = only_junit_failure(
      "<testcase classname='prog.global' name='stops/twice'><failure>\nFAILED:\n"
      "  CHECK( a )\nwith expansion:\n  false\nwhile stopping\nat a.cc:5\n</failure>"
      "</testcase>");
  expect_failure(logged, "stops/twice", "a.cc:5: CHECK( a ): while stopping");
  EXPECT_EQ(logged.framework, Framework::catch2);
}

TEST(JunitLog, Reads_the_output_that_ctest_keeps) {
  const LoggedFailure logged = only_junit_failure(
      "<testcase name='units' classname='units' status='fail'><failure message='Failed'/>"
      "<system-out>[ RUN      ] A.b\na.cc:8: Failure\nFailed\n[  FAILED  ] A.b (0 ms)\n"
      "</system-out></testcase>");
  EXPECT_EQ(logged.entry, "units");
  expect_failure(logged, "A.b", "a.cc:8");
}

TEST(JunitLog, Knows_the_words_of_ctest) {
  const LoggedFailure logged = only_junit_failure(
      "<testcase name='units' classname='units'><failure message='SEGFAULT'/></testcase>");
  expect_failure(logged, "", "SIGSEGV");
  EXPECT_EQ(logged.entry, "units");
}

TEST(JunitLog, Reads_failures_of_runs_that_were_tried_again) {
  const LoggedFailure logged = only_junit_failure(
      "<testcase classname='server_test.A' name='b'><flakyFailure message='a.cc:8' "
      "type='assertion'><system-out>[ RUN      ] A.b\na.cc:8: Failure\nFailed\n"
      "[  FAILED  ] A.b (0 ms)\n</system-out></flakyFailure></testcase>");
  expect_failure(logged, "A.b", "a.cc:8");
}

TEST(JunitLog, Leaves_out_failures_that_a_test_may_have) {
  const auto log = read_ci_log(
      "<testsuite><testcase name='a'><skipped/><failure>x</failure></testcase>"
      "<testcase name='b'/></testsuite>");
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->failures.empty());
  EXPECT_TRUE(log->shows_passing_runs);
}

TEST(JunitLog, Reads_what_there_is_of_a_file_that_was_cut_short) {
  const auto log = read_ci_log(
      "<testsuite><testcase classname='A' name='b'><failure>a.cc:8\nFailed</failure></testcase>"
      "<testcase classname='A' na");
  ASSERT_TRUE(log);
  ASSERT_EQ(log->failures.size(), 1u);
  EXPECT_EQ(log->failures.front().test, "A.b");
}

TEST(JunitLog, Refuses_xml_of_something_else) {
  EXPECT_FALSE(read_ci_log("<?xml version='1.0'?><html><body/></html>"));
  EXPECT_FALSE(read_ci_log("<?xml version='1.0'?><testsuite"));
}

TEST(JunitLog, Does_not_expand_entities) {
  std::string bomb = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a0 'aaaaaaaaaa'>";
  for (int i = 1; i < 20; ++i)
    bomb += "<!ENTITY a" + std::to_string(i) + " '&a" + std::to_string(i - 1) + ";&a" +
            std::to_string(i - 1) + ";'>";
  bomb += "]><testsuite><testcase name='&a19;'><failure>&a19;</failure></testcase></testsuite>";
  const auto log = read_ci_log(bomb);
  ASSERT_TRUE(log);
  ASSERT_EQ(log->failures.size(), 1u);
  EXPECT_EQ(log->failures.front().entry, "&a19;");
}

TEST(JunitLog, Survives_elements_within_elements) {
  std::string deep = "<testsuites>";
  for (int i = 0; i < 200'000; ++i) deep += "<testsuite>";
  EXPECT_FALSE(read_ci_log(deep));
  EXPECT_TRUE(read_ci_log(deep + "<testcase name='a'/>"));
}

TEST(JunitLog, Refuses_more_elements_than_a_report_has) {
  std::string many = "<testsuites>";
  for (int i = 0; i < 2'000'001; ++i) many += "<a>";
  const auto log = read_ci_log(many);
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().what.find("too many elements"), std::string::npos);
}

TEST(JunitLog, Cuts_names_that_are_too_long) {
  const LoggedFailure logged =
      only_junit_failure("<testcase classname='A' name='" + std::string(1'000'000, 'b') +
                         "'><failure>a.cc:8\nFailed</failure></testcase>");
  EXPECT_LE(logged.test.size(), 500u);
}

}  // namespace
}  // namespace unflake
