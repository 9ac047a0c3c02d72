#include <gmock/gmock.h>

#include "support/read_report.h"

namespace unflake {
namespace {

using testing::ElementsAre;
using enum OutcomeKind;

std::vector<OutcomeKind> outcomes(const ReadRuns& read) {
  std::vector<OutcomeKind> all;
  for (const RunRecord& run : read.runs) all.push_back(run.outcome);
  return all;
}

void expect_failure(const RunRecord& run, OutcomeKind outcome, std::string_view line) {
  EXPECT_EQ(run.outcome, outcome);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(headline(*run.failure), line);
  EXPECT_EQ(run.signature, signature_of(*run.failure));
}

constexpr const char* gtest_report = R"xml(<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" time="1.25" timestamp="2026-03-01T12:00:00.500" name="AllTests">
  <testsuite name="Queue" tests="4" timestamp="2026-03-01T12:00:00.500">
    <testcase name="Pops" file="q.cc" line="3" status="run" result="completed" time="0.25" timestamp="2026-03-01T12:00:00.500" classname="Queue" />
    <testcase name="Blocks" status="run" result="completed" time="1" timestamp="2026-03-01T12:00:00.750" classname="Queue">
      <failure message="q.cc:8&#x0A;Value of: done" type=""><![CDATA[q.cc:8
Value of: done
  Actual: false
Expected: true]]></failure>
      <failure message="q.cc:9&#x0A;Failed" type=""><![CDATA[q.cc:9
Failed]]></failure>
    </testcase>
    <testcase name="Skips" status="run" result="skipped" time="0" classname="Queue"><skipped message="not here"/></testcase>
    <testcase name="DISABLED_Later" status="notrun" result="suppressed" time="0" timestamp="1970-01-01T00:00:00.000" classname="Queue" />
  </testsuite>
</testsuites>
)xml";

TEST(Dialects, Googletest_is_called_after_the_file) {
  const ReadRuns read = read_report(gtest_report, "build/reports/queue_test.xml");
  EXPECT_EQ(read.ids(),
            "queue_test:Queue.Pops\nqueue_test:Queue.Blocks\nqueue_test:Queue.Skips\n"
            "queue_test:Queue.DISABLED_Later\n");
  EXPECT_THAT(outcomes(read), ElementsAre(pass, fail, skipped, skipped));
  expect_failure(read.runs[1], fail, "q.cc:8: done");
  EXPECT_EQ(read.runs[0].duration, Duration(250'000));
  EXPECT_EQ(read.runs[1].started - read.runs[0].started, Duration(250'000));
}

TEST(Dialects, Several_failures_of_one_googletest_case_are_one_run) {
  EXPECT_EQ(read_report(gtest_report).report.counts.failures, 1);
}

TEST(Dialects, A_report_with_a_common_name_does_not_name_the_target) {
  for (const char* path : {"test_detail.xml", "out/results.xml", "test-results.xml", ""})
    EXPECT_EQ(read_report(gtest_report, path).runs[0].test.target, "junit") << path;
}

TEST(Dialects, Googletest_under_bazel_is_called_after_the_label) {
  const ReadRuns read =
      read_report(gtest_report, "bazel-testlogs/net/queue_test/shard_1_of_4/test.xml");
  EXPECT_EQ(read.runs[0].test.target, "net/queue_test");
}

TEST(Dialects, The_user_names_the_target) {
  const ReadRuns read = read_report(bytes_of_text(gtest_report), {"a.xml", "mine", ""});
  EXPECT_EQ(to_string(read.runs[0].test), "mine:Queue.Pops");
}

TEST(Dialects, Catch2) {
  const ReadRuns read = read_report(R"xml(<testsuites>
  <testsuite errors="1" failures="1" tests="3" hostname="tbd" time="0.1" timestamp="2026-03-01T12:00:00Z">
    <testcase classname="queue_test.global" name="pops / twice" time="0.05" status="run"/>
    <testcase classname="queue_test.Fixture" name="blocks" time="0.05" status="run">
      <failure message="done" type="REQUIRE">
FAILED:
  REQUIRE( done )
with expansion:
  false
at /src/q.cc:16
      </failure>
    </testcase>
    <testcase classname="queue_test.global" name="crashes" time="0" status="run">
      <error type="TEST_CASE">
FAILED:
SIGSEGV - Segmentation violation signal
at /src/q.cc:20
      </error>
    </testcase>
  </testsuite>
</testsuites>)xml");
  EXPECT_EQ(read.ids(), "queue_test:pops / twice\nqueue_test:blocks\nqueue_test:crashes\n");
  EXPECT_THAT(outcomes(read), ElementsAre(pass, fail, crash));
  expect_failure(read.runs[1], fail, "q.cc:16: REQUIRE( done )");
}

TEST(Dialects, Doctest_names_the_program_by_its_path) {
  const ReadRuns read = read_report(
      "<testsuites><testsuite name='/b/queue_test' doctest_version='2.4.9'>"
      "<testcase classname='/src/q.cc' name='blocks' time='0' status='run'>"
      "<failure message='1 == 2' type='CHECK'>\n/src/q.cc:18:\nCHECK( a == b ) is NOT correct!\n"
      "  values: CHECK( 1 == 2 )\n\n</failure></testcase></testsuite></testsuites>");
  EXPECT_EQ(read.ids(), "queue_test:blocks\n");
  expect_failure(read.runs[0], fail, "q.cc:18: CHECK( a == b )");
}

TEST(Dialects, Boost_test_has_suites_in_the_name) {
  const ReadRuns read = read_report(
      "<testsuite tests='2' id='0' name='Master Test Suite' time='0.1'>"
      "<testcase assertions='1' classname='net.inner' name='blocks' time='8.1e-05'>"
      "<failure message='failure' type='assertion error'><![CDATA[\nASSERTION FAILURE:\n"
      "- file   : q.cc\n- line   : 26\n- message: check done has failed\n\n]]></failure>"
      "</testcase><testcase assertions='0' name='off' time='0'><skipped/></testcase></testsuite>",
      "queue_test.xml");
  EXPECT_EQ(read.ids(), "queue_test:net/inner/blocks\nqueue_test:off\n");
  EXPECT_THAT(outcomes(read), ElementsAre(fail, skipped));
  EXPECT_EQ(read.runs[0].failure->line, 26);
  EXPECT_EQ(read.runs[0].duration, Duration(81));
}

constexpr const char* ctest_report = R"xml(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux-c++" tests="5" failures="3" disabled="1" skipped="1" hostname="" time="3" timestamp="2026-03-01T12:00:00">
  <testcase name="ok" classname="ok" time="0.5" status="run"><properties/><system-out>fine</system-out></testcase>
  <testcase name="units" classname="units" time="1" status="fail"><failure message="Failed"/><system-out>[ RUN      ] A.b
a.cc:8: Failure
Failed
[  FAILED  ] A.b (0 ms)
</system-out></testcase>
  <testcase name="dies" classname="dies" time="0" status="fail"><failure message="SEGFAULT"/><system-out></system-out></testcase>
  <testcase name="hangs" classname="hangs" time="1.5" status="fail"><failure message="Timeout"/><system-out></system-out></testcase>
  <testcase name="later" classname="later" time="0" status="disabled"><skipped message="Disabled"/></testcase>
</testsuite>)xml";

TEST(Dialects, Junit_of_ctest) {
  const ReadRuns read = read_report(bytes_of_text(ctest_report), {"junit.xml", "", "acme"});
  EXPECT_EQ(read.ids(), "acme:ok\nacme:units\nacme:dies\nacme:hangs\nacme:later\n");
  EXPECT_THAT(outcomes(read), ElementsAre(pass, fail, crash, timeout, skipped));
  EXPECT_EQ(read.runs[1].failure->line, 8);
  EXPECT_EQ(read.runs[2].failure->message, "SIGSEGV");
}

TEST(Dialects, Test_xml_of_ctest) {
  const ReadRuns read = read_report(bytes_of_text(R"xml(<?xml version="1.0" encoding="UTF-8"?>
<Site BuildName="(empty)" Generator="ctest-3.25.1" Name="(empty)"><Testing>
  <StartDateTime>Mar 01 12:00 UTC</StartDateTime><StartTestTime>1772366400</StartTestTime>
  <TestList><Test>./ok</Test><Test>./units</Test></TestList>
  <Test Status="passed"><Name>ok</Name><Path>.</Path><FullName>./ok</FullName><FullCommandLine>ok</FullCommandLine>
    <Results><NamedMeasurement type="numeric/double" name="Execution Time"><Value>0.5</Value></NamedMeasurement>
    <NamedMeasurement type="text/string" name="Completion Status"><Value>Completed</Value></NamedMeasurement>
    <Measurement><Value encoding="base64" compression="gzip">eJwrzy/KSQEABiwCGg==</Value></Measurement></Results></Test>
  <Test Status="failed"><Name>units</Name><Results>
    <NamedMeasurement type="text/string" name="Exit Code"><Value>Failed</Value></NamedMeasurement>
    <NamedMeasurement type="numeric/double" name="Execution Time"><Value>1.5</Value></NamedMeasurement>
    <Measurement><Value>a.cc:8: Failure
Failed
</Value></Measurement></Results></Test>
  <Test Status="failed"><Name>dies</Name><Results>
    <NamedMeasurement type="text/string" name="Exit Code"><Value>SEGFAULT</Value></NamedMeasurement>
    <Measurement><Value encoding="base64" compression="gzip">eJwDAAAAAAE=</Value></Measurement></Results></Test>
  <Test Status="failed"><Name>hangs</Name><Results>
    <NamedMeasurement type="text/string" name="Completion Status"><Value>Timeout</Value></NamedMeasurement></Results></Test>
  <Test Status="notrun"><Name>gone</Name><Results/></Test>
  <EndTestTime>1772366500</EndTestTime></Testing></Site>)xml"),
                                    {"build/Testing/x/Test.xml", "", "acme"});
  EXPECT_EQ(read.ids(), "acme:ok\nacme:units\nacme:dies\nacme:hangs\nacme:gone\n");
  EXPECT_THAT(outcomes(read), ElementsAre(pass, fail, crash, timeout, skipped));
  EXPECT_EQ(read.runs[1].failure->line, 8);
  EXPECT_EQ(read.runs[0].started, TimePoint(std::chrono::seconds(1772366400)));
  EXPECT_EQ(read.runs[1].duration, Duration(1'500'000));
  EXPECT_EQ(read.report.counts.packed_outputs, 1);
}

TEST(Dialects, Ctest_fails_what_it_could_not_start_and_skips_what_is_disabled) {
  const ReadRuns read =
      read_report(R"xml(<testsuite name="(empty)" tests="4" timestamp="2026-03-01T12:00:00">
  <testcase name="client" classname="client" time="0" status="notrun"><skipped message="Unable to find executable"/>
    <system-out>Unable to find executable: /b/client_test</system-out></testcase>
  <testcase name="needs" classname="needs" time="0" status="notrun"><skipped message="Required Files Missing"/>
    <system-out>Unable to find required file: x</system-out></testcase>
  <testcase name="off" classname="off" time="0" status="disabled"><system-out>Disabled</system-out></testcase>
  <testcase name="skips" classname="skips" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>)xml");
  EXPECT_THAT(outcomes(read), ElementsAre(fail, fail, skipped, skipped));
  EXPECT_EQ(read.runs[0].failure->kind, FailureKind::not_started);
  EXPECT_THAT(read.runs[0].failure->message, testing::HasSubstr("not built: "));
  EXPECT_THAT(read.runs[0].failure->message, testing::HasSubstr("/b/client_test"));
  const ReadRuns own = read_report(bytes_of_text(R"xml(<Site><Testing>
  <Test Status="notrun"><Name>gone</Name><Results><NamedMeasurement type="text/string" name="Completion Status">
    <Value>Unable to find executable</Value></NamedMeasurement></Results></Test>
  <Test Status="notrun"><Name>off</Name><Results><NamedMeasurement type="text/string" name="Completion Status">
    <Value>Disabled</Value></NamedMeasurement></Results></Test></Testing></Site>)xml"),
                                   {"build/Testing/x/Test.xml", "", "acme"});
  EXPECT_THAT(outcomes(own), ElementsAre(fail, skipped));
  EXPECT_EQ(own.runs[0].signature, read.runs[0].signature);
}

TEST(Dialects, Pytest) {
  const ReadRuns read = read_report(R"xml(<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="5" time="0.4" timestamp="2026-03-01T12:00:00.000000+01:00" hostname="b">
<testcase classname="tests.test_queue.TestQueue" name="test_pops[1-2]" time="0.001"><properties><property name="k" value="v"/></properties></testcase>
<testcase classname="tests.test_queue" name="test_blocks" time="0.1"><failure message="AssertionError: assert 7 == 8&#10;  +  where 7 = f()">def test_blocks():
&gt;       assert f() == 8
E       AssertionError: assert 7 == 8

tests/test_queue.py:12: AssertionError</failure></testcase>
<testcase classname="tests.test_queue" name="test_setup" time="0.1"><error message="failed on setup with &quot;OSError: no&quot;">conftest.py:3: OSError</error></testcase>
<testcase classname="tests.test_queue" name="test_off" time="0"><skipped type="pytest.skip" message="no net">x</skipped></testcase>
<testcase classname="tests.test_queue" name="test_slow" time="1"><failure message="Failed: Timeout &gt;1.0s">t.py:1: Failed</failure></testcase>
</testsuite></testsuites>)xml");
  EXPECT_EQ(read.runs[0].test, (TestId{"pytest", "tests.test_queue.TestQueue.test_pops[1-2]"}));
  EXPECT_THAT(outcomes(read), ElementsAre(pass, fail, fail, skipped, timeout));
  expect_failure(read.runs[1], fail, "test_queue.py:12: AssertionError: assert 7 == 8");
  EXPECT_EQ(read.runs[2].failure->kind, FailureKind::exception);
  EXPECT_EQ(read.runs[0].started, TimePoint(std::chrono::seconds(1772362800)));
}

TEST(Dialects, Pytest_tells_what_was_tried_again) {
  const ReadRuns read = read_report(
      "<testsuite name='pytest'><testcase classname='t' name='a' time='2'>"
      "<rerun message='assert x'>t.py:3: AssertionError</rerun></testcase></testsuite>");
  EXPECT_THAT(outcomes(read), ElementsAre(fail, pass));
  EXPECT_EQ(read.report.counts.flaky, 1);
}

TEST(Dialects, Surefire_counts_every_try) {
  const ReadRuns read = read_report(R"xml(<testsuite name="com.acme.QueueTest" time="3.2" tests="2">
  <testcase name="blocks" classname="com.acme.QueueTest" time="1,234.5">
    <flakyFailure message="expected:&lt;1&gt; but was:&lt;2&gt;" type="java.lang.AssertionError">
      <stackTrace>java.lang.AssertionError: expected
	at org.junit.Assert.fail(Assert.java:88)
	at com.acme.QueueTest.blocks(QueueTest.java:42)</stackTrace><system-out>first</system-out></flakyFailure>
    <flakyError message="boom" type="java.io.IOException"><stackTrace>x</stackTrace></flakyError>
  </testcase>
  <testcase name="pops" classname="com.acme.QueueTest" time="1">
    <failure message="no" type="java.lang.AssertionError">	at com.acme.QueueTest.pops(QueueTest.java:50)</failure>
    <rerunFailure message="no" type="java.lang.AssertionError"><stackTrace>	at com.acme.QueueTest.pops(QueueTest.java:50)</stackTrace></rerunFailure>
  </testcase>
</testsuite>)xml");
  EXPECT_THAT(outcomes(read), ElementsAre(fail, fail, pass, fail, fail));
  EXPECT_EQ(read.runs[0].test, (TestId{"com.acme.QueueTest", "blocks"}));
  EXPECT_EQ(read.runs[0].failure->file, "QueueTest.java");
  EXPECT_EQ(read.runs[0].failure->line, 42);
  EXPECT_NE(read.runs[0].output.find("first"), std::string::npos);
  EXPECT_EQ(read.runs[2].attempt, 3);
  EXPECT_EQ(read.runs[2].duration, Duration(1'234'500'000));
  EXPECT_EQ(read.runs[3].signature, read.runs[4].signature);
  EXPECT_EQ(read.report.counts.flaky, 1);
}

TEST(Dialects, Nextest_has_times_of_every_try) {
  const ReadRuns read = read_report(
      R"xml(<testsuites name="nextest-run" uuid="x" timestamp="2026-03-01T12:00:00+00:00" time="2">
  <testsuite name="acme::queue" tests="2">
    <testcase name="tests::blocks" classname="acme::queue" timestamp="2026-03-01T12:00:05+00:00" time="0.5">
      <flakyFailure timestamp="2026-03-01T12:00:01+00:00" time="0.2" message="thread 'tests::blocks' panicked at src/queue.rs:12:5" type="test failure">thread 'tests::blocks' panicked at src/queue.rs:12:5:
full<system-out>noise</system-out></flakyFailure></testcase>
    <testcase name="tests::hangs" classname="acme::queue" time="60"><failure type="test timeout"/></testcase>
  </testsuite></testsuites>)xml");
  EXPECT_EQ(read.ids(),
            "acme::queue:tests::blocks\nacme::queue:tests::blocks\nacme::queue:tests::hangs\n");
  EXPECT_THAT(outcomes(read), ElementsAre(fail, pass, timeout));
  EXPECT_EQ(read.runs[0].duration, Duration(200'000));
  EXPECT_EQ(read.runs[0].failure->file, "src/queue.rs");
}

TEST(Dialects, Go_is_called_after_the_package) {
  const ReadRuns read = read_report(
      "<testsuites tests='1'><testsuite name='acme.org/queue' timestamp='2026-03-01T12:00:00Z'>"
      "<testcase classname='acme.org/queue' name='TestBlocks/sub' time='0.01'>"
      "<failure message='Failed' type=''>=== RUN\n    queue_test.go:12: it is full\n</failure>"
      "</testcase></testsuite></testsuites>");
  EXPECT_EQ(read.ids(), "acme.org/queue:TestBlocks/sub\n");
  EXPECT_EQ(read.runs[0].failure->file, "queue_test.go");
  EXPECT_EQ(read.runs[0].failure->line, 12);
}

// The only run of a Go report with this in its case.
RunRecord go_run(const std::string& contents) {
  return only_run(
      "<testsuite name='acme.org/queue'><testcase classname='acme.org/queue' "
      "name='TestItems' time='0.01'>" +
      contents + "</testcase></testsuite>");
}

TEST(Dialects, Go_says_in_the_body_what_failed) {
  const RunRecord run = go_run(
      "<failure message='Failed' type=''>=== RUN   TestItems\n    queue_test.go:12: got 2 items, "
      "want 3\n        in the second round\n    queue_test.go:15: and more\n--- FAIL: TestItems "
      "(0.01s)\n</failure>");
  expect_failure(run, fail, "queue_test.go:12: got 2 items, want 3");
  EXPECT_EQ(run.failure->message, "got 2 items, want 3\n  in the second round");
}

TEST(Dialects, Go_says_in_the_output_what_failed_where_the_body_is_empty) {
  expect_failure(go_run("<failure message='Failed'></failure><system-out>=== RUN   TestItems\n"
                        "    queue_test.go:12: got 2 items, want 3\n</system-out>"),
                 fail, "queue_test.go:12: got 2 items, want 3");
}

TEST(Dialects, Go_panics_where_the_tests_own_code_is) {
  expect_failure(
      go_run(
          "<failure message='Failed'>    queue_test.go:9: starting\n--- FAIL: TestItems (0.00s)\n"
          "panic: index out of range [recovered]\n\tpanic: index out of range\n\n"
          "goroutine 7 [running]:\ntesting.tRunner.func1()\n"
          "\t/usr/lib/go/src/testing/testing.go:1632 +0x35e\n</failure>"),
      fail, "queue_test.go:9: panic: index out of range");
}

TEST(Dialects, Testify_has_labels_around_what_it_says) {
  expect_failure(go_run("<failure message='Failed'>    queue_test.go:12: \n"
                        "        \tError Trace:\t/src/queue_test.go:12\n"
                        "        \tError:      \tNot equal:\n"
                        "        \t            \texpected: 3\n</failure>"),
                 fail, "queue_test.go:12: Not equal:");
}

TEST(Dialects, A_word_of_the_runner_gives_way_to_what_the_body_says) {
  const RunRecord run = only_run(
      "<testsuite name='s'><testcase name='a'><failure message='Failure'>the queue is full"
      "</failure></testcase></testsuite>");
  expect_failure(run, fail, "the queue is full");
}

TEST(Dialects, The_type_of_an_exception_is_told_once) {
  const auto headline_of = [](const std::string& failure) {
    return headline(
        *only_run("<testsuite name='s'><testcase name='a'>" + failure + "</testcase></testsuite>")
             .failure);
  };
  const std::string once = "java.io.IOException: disk full";
  EXPECT_EQ(headline_of("<error type='java.io.IOException' message='" + once + "'/>"), once);
  EXPECT_EQ(headline_of("<error type='java.io.IOException'>" + once + "</error>"), once);
  EXPECT_EQ(headline_of("<error type='java.io.IOException' message='disk full'/>"), once);
  EXPECT_EQ(headline_of("<error type='E' message='E'/>"), "E");
  EXPECT_EQ(headline_of("<error type='E' message='Error in E'/>"), "E: Error in E");
}

TEST(Dialects, A_time_that_is_not_told_is_not_known) {
  const ReadRuns read = read_report(
      "<testsuite name='s'><testcase name='a' time='1.5'><failure message='no'/>"
      "<rerunFailure message='no'/><rerunFailure message='no' time='0.5'/></testcase>"
      "<testcase name='b'/><testcase name='c' time='0'/></testsuite>");
  std::vector<Duration> durations;
  for (const RunRecord& run : read.runs) durations.push_back(run.duration);
  EXPECT_THAT(durations, ElementsAre(Duration(1'500'000), unknown_duration, Duration(500'000),
                                     unknown_duration, Duration(0)));
}

TEST(Dialects, A_test_that_failed_in_one_case_and_passed_in_another_is_flaky) {
  const ReadRuns read = read_report(
      "<testsuite name='s'><testcase name='a'><failure message='no'/></testcase>"
      "<testcase name='b'><failure message='no'/></testcase><testcase name='a'/>"
      "<testcase name='a'/></testsuite>");
  EXPECT_EQ(read.report.counts.flaky, 1);
}

TEST(Dialects, Bazel_keeps_the_log_of_the_target) {
  const ReadRuns read = read_report(
      "<testsuites><testsuite name='net/queue_test' tests='1' failures='0' errors='1'>"
      "<testcase name='net/queue_test' status='run' duration='3' time='3'>"
      "<error message='exited with error code 1'></error><system-out>\n"
      "[ RUN      ] A.b\na.cc:8: Failure\nFailed\n[  FAILED  ] A.b (0 ms)\n</system-out>"
      "</testcase></testsuite></testsuites>");
  EXPECT_EQ(read.ids(), "net/queue_test:net/queue_test\n");
  expect_failure(read.runs[0], fail, "a.cc:8");
}

TEST(Dialects, Suites_within_suites_are_part_of_the_name) {
  const ReadRuns read = read_report(
      "<testsuites><testsuite name='app'><testsuite name='queue'><testcase name='pops'/>"
      "</testsuite><testcase name='starts'/></testsuite></testsuites>");
  EXPECT_EQ(read.ids(), "app:queue.pops\napp:starts\n");
}

TEST(Dialects, Elements_that_nobody_knows_are_passed_over) {
  const ReadRuns read = read_report(
      "<testsuites><x><y>z</y></x><testsuite name='a'><custom/><testcase name='b'><attachment>"
      "<failing>no</failing></attachment></testcase></testsuite></testsuites>");
  EXPECT_THAT(outcomes(read), ElementsAre(pass));
}

TEST(Dialects, A_case_outside_of_any_suite_counts) {
  EXPECT_EQ(to_string(only_run("<testsuites name='all'><testcase name='b'/></testsuites>").test),
            "all:b");
}

TEST(Dialects, A_failure_that_a_test_may_have_is_none) {
  EXPECT_EQ(only_run("<testsuite><testcase name='a'><skipped/><failure>x</failure></testcase>"
                     "</testsuite>")
                .outcome,
            skipped);
}

TEST(Dialects, The_same_failure_has_the_same_signature_with_other_values) {
  const auto failing = [](const std::string& value) {
    return only_run("<testsuite name='s'><testcase name='a'><failure message='got " + value +
                    " items' type='E'>t.py:3: E</failure></testcase></testsuite>")
        .signature;
  };
  EXPECT_EQ(failing("17"), failing("234"));
}

TEST(Dialects, Reads_what_unflake_wrote) {
  const ReadRuns read = read_report(R"xml(<testsuites name="unflake"><testsuite name="queue_test">
<testcase classname="queue_test.Queue" name="Pops" time="0.1"><properties><property name="unflake.runs" value="3"/><property name="unflake.failures" value="1"/></properties>
<flakyFailure message="q.cc:8" type="assertion"><stackTrace>q.cc:8</stackTrace><system-out>q.cc:8: Failure
Failed
</system-out></flakyFailure></testcase>
<testcase classname="queue_test" name="plain"/>
<testcase classname="queue_test.net/inner" name="case"><properties><property name="unflake.test" value="net/inner/case"/></properties></testcase>
<testcase classname="queue_test.Queue" name="Dies"><error message="SIGSEGV" type="signal">SIGSEGV</error></testcase>
</testsuite></testsuites>)xml");
  EXPECT_EQ(
      read.ids(),
      "queue_test:Queue.Pops\nqueue_test:Queue.Pops\nqueue_test:Queue.Pops\nqueue_test:plain\n"
      "queue_test:net/inner/case\nqueue_test:Queue.Dies\n");
  EXPECT_THAT(outcomes(read), ElementsAre(fail, pass, pass, pass, pass, crash));
}

}  // namespace
}  // namespace unflake
