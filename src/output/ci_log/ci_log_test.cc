#include "output/ci_log/ci_log.h"
#include "output/read_outcome.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace unflake {
namespace {

CiLog read(std::string_view text) {
  const auto log = read_ci_log(text);
  EXPECT_TRUE(log) << to_string(log.error());
  return log ? *log : CiLog{};
}

LoggedFailure only_failure(std::string_view text) {
  const CiLog log = read(text);
  EXPECT_EQ(log.failures.size(), 1u);
  return log.failures.empty() ? LoggedFailure{} : log.failures.front();
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (const LoggedFailure& logged : read(text).failures) names.push_back(logged.test);
  return names;
}

using Names = std::vector<std::string>;

// Of a run of one test alone with this output.
std::string live_signature(Framework framework, ProcessResult::End end, int code,
                           std::string output) {
  unflake::Test test;
  test.framework = framework;
  ProcessResult process;
  process.end = end;
  process.code = code;
  process.output.total = output.size();
  process.output.head = std::move(output);
  return read_outcome(test, process).signature;
}

std::string signature_in(const LoggedFailure& logged) {
  return logged.failures.empty() ? "" : signature_of(logged.failures.front());
}

constexpr const char* two_fail = R"([==========] Running 4 tests from 1 test suite.
[----------] 4 tests from Server
[ RUN      ] Server.starts
[       OK ] Server.starts (0 ms)
[ RUN      ] Server.stops
/ci/build/net/server_test.cc:8: Failure
Expected equality of these values:
  got
    Which is: 1
  2
had nothing
[  FAILED  ] Server.stops (3 ms)
[ RUN      ] Server.waits
output without an end of its line[       OK ] Server.waits (0 ms)
[ RUN      ] Server.listens
/ci/build/net/server_test.cc:30: Failure
Value of: ok
  Actual: false
Expected: true
[  FAILED  ] Server.listens, where GetParam() = 4 (12 ms)
[----------] 4 tests from Server (15 ms total)

[==========] 4 tests from 1 test suite ran. (15 ms total)
[  PASSED  ] 2 tests.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Server.stops
[  FAILED  ] Server.listens, where GetParam() = 4

 2 FAILED TESTS
)";

constexpr const char* stops_alone = R"([ RUN      ] Server.stops
server_test.cc:8: Failure
Expected equality of these values:
  got
    Which is: 7
  2
had nothing
[  FAILED  ] Server.stops (3 ms)
[  PASSED  ] 0 tests.
)";

const std::string stops_signature =
    live_signature(Framework::gtest, ProcessResult::End::exited, 1, stops_alone);

TEST(CiLog, Names_every_test_of_googletest_that_failed_once) {
  EXPECT_EQ(names_in(two_fail), (Names{"Server.stops", "Server.listens"}));
}

TEST(CiLog, Gives_a_failure_the_signature_that_it_has_elsewhere) {
  const CiLog log = read(two_fail);
  ASSERT_FALSE(log.failures.empty());
  EXPECT_EQ(signature_in(log.failures.front()), stops_signature);
  EXPECT_EQ(log.failures.front().framework, Framework::gtest);
  EXPECT_EQ(log.failures.front().line, 5u);
}

TEST(CiLog, Sees_runs_that_pass) {
  EXPECT_TRUE(read(two_fail).shows_passing_runs);
  EXPECT_EQ(read(two_fail).lines, 29u);
}

TEST(CiLog, Of_a_passing_run_names_no_failure) {
  const CiLog log = read("[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[  PASSED  ] 1 test.\n");
  EXPECT_TRUE(log.failures.empty());
  EXPECT_TRUE(log.shows_passing_runs);
}

TEST(CiLog, Of_brief_googletest_names_the_test_behind_its_failure) {
  const LoggedFailure logged = only_failure(
      "[==========] Running 3 tests from 1 test suite.\n"
      "/ci/net/server_test.cc:8: Failure\nExpected equality of these values:\n  got\n"
      "    Which is: 3\n  2\nhad nothing\n[  FAILED  ] Server.stops (0 ms)\n"
      "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 2 tests.\n");
  EXPECT_EQ(logged.test, "Server.stops");
  EXPECT_EQ(signature_in(logged), stops_signature);
}

TEST(CiLog, Of_shards_names_the_failures_of_each) {
  const std::string shard = "Note: This is test shard 1 of 2.\n";
  EXPECT_EQ(names_in(shard + two_fail + shard + stops_alone),
            (Names{"Server.stops", "Server.listens", "Server.stops"}));
}

TEST(CiLog, With_nothing_but_a_summary_names_the_test_without_a_failure) {
  const LoggedFailure logged =
      only_failure("[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Server.stops\n");
  EXPECT_EQ(logged.test, "Server.stops");
  EXPECT_TRUE(logged.failures.empty());
}

TEST(CiLog, Explains_a_test_that_does_not_end_by_the_shell) {
  const LoggedFailure logged = only_failure(
      "[ RUN      ] Server.stops\nrun.sh: line 3: 17 Segmentation fault      (core "
      "dumped) ./server_test\nmake: *** [Makefile:3: check] Error 139\n");
  EXPECT_EQ(logged.test, "Server.stops");
  EXPECT_EQ(signature_in(logged), live_signature(Framework::gtest, ProcessResult::End::signalled,
                                                 SIGSEGV, "[ RUN      ] Server.stops\n"));
}

TEST(CiLog, Explains_a_test_that_does_not_end_by_its_last_words) {
  const std::string output =
      "[ RUN      ] Server.stops\nserver_test: /ci/server.cc:12: void f(): Assertion `ready' "
      "failed.\n";
  const LoggedFailure logged = only_failure(output + "Aborted (core dumped)\nPost job cleanup.\n");
  EXPECT_EQ(logged.test, "Server.stops");
  EXPECT_EQ(signature_in(logged),
            live_signature(Framework::gtest, ProcessResult::End::signalled, SIGABRT, output));
}

TEST(CiLog, Explains_a_test_that_does_not_end_by_a_sanitizer) {
  const std::string output =
      "[ RUN      ] Server.stops\n"
      "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2\n"
      "    #0 0x1 in Server::push(int) /ci/server.cc:12\n\n==7==ABORTING\n";
  EXPECT_EQ(signature_in(only_failure(output)),
            live_signature(Framework::gtest, ProcessResult::End::exited, 1, output));
}

TEST(CiLog, Tells_of_a_race_in_a_test_that_passes) {
  const LoggedFailure logged = only_failure(
      "[ RUN      ] Server.stops\nWARNING: ThreadSanitizer: data race (pid=7)\n"
      "  Write of size 4 at 0x1 by thread T1:\n    #0 Server::push() /ci/server.cc:12 (a+0x1)\n"
      "SUMMARY: ThreadSanitizer: data race /ci/server.cc:12 in Server::push()\n"
      "[       OK ] Server.stops (0 ms)\n[ RUN      ] Server.starts\n"
      "[       OK ] Server.starts (0 ms)\n");
  EXPECT_EQ(logged.test, "Server.stops");
  ASSERT_FALSE(logged.failures.empty());
  EXPECT_EQ(logged.failures.front().kind, FailureKind::thread_sanitizer);
}

TEST(CiLog, Does_not_take_what_a_passing_test_prints_for_a_failure) {
  const CiLog log = read(
      "[ RUN      ] Shell.reports\nSegmentation fault (core dumped)\n"
      "*** 1 failure is detected in the test module \"x\"\na.cc(3): error: in \"b\": check c has "
      "failed\n[       OK ] Shell.reports (0 ms)\n");
  EXPECT_TRUE(log.failures.empty());
}

TEST(CiLog, Of_a_cancelled_job_tells_of_a_time_out) {
  const LoggedFailure logged =
      only_failure("[ RUN      ] Server.stops\n##[error]The operation was canceled.\n");
  EXPECT_EQ(logged.test, "Server.stops");
  ASSERT_FALSE(logged.failures.empty());
  EXPECT_EQ(logged.failures.front().kind, FailureKind::timeout);
}

constexpr const char* ctest_log = R"(Test project /ci/build
      Start  1: units
 1/4 Test  #1: units ............................***Failed    0.05 sec
Running main()
[ RUN      ] Server.stops
/ci/net/server_test.cc:8: Failure
Expected equality of these values:
  got
    Which is: 1
  2
had nothing
[  FAILED  ] Server.stops (3 ms)
[  PASSED  ] 0 tests.

      Start  2: net.slow
 2/4 Test  #2: net.slow .........................***Timeout   2.01 sec
      Start  3: breaks
 3/4 Test  #3: breaks ...........................Subprocess aborted***Exception:   0.05 sec
prog: /ci/a.cc:3: int main(): Assertion `a' failed.

      Start  4: good
 4/4 Test  #4: good .............................   Passed    0.03 sec

25% tests passed, 3 tests failed out of 4

The following tests FAILED:
	  1 - units (Failed)
	  2 - net.slow (Timeout)
	  3 - breaks (Subprocess aborted)
	  9 - elsewhere (SEGFAULT)                  slow
Errors while running CTest
)";

TEST(CiLog, Of_ctest_names_the_entries_and_their_cases) {
  Names names;
  for (const LoggedFailure& logged : read(ctest_log).failures)
    names.push_back(fmt::format("{}|{}|{}", logged.entry, logged.test,
                                logged.failures.empty() ? "" : headline(logged.failures.front())));
  EXPECT_EQ(names, (Names{"units|Server.stops|server_test.cc:8: got == 2: had nothing",
                          "net.slow||timeout", "breaks||a.cc:3: a", "elsewhere||SIGSEGV"}));
}

TEST(CiLog, Of_ctest_shows_passing_entries) {
  EXPECT_TRUE(read(ctest_log).shows_passing_runs);
}

TEST(CiLog, Of_verbose_ctest_takes_entries_that_ran_together_apart) {
  const CiLog log = read(R"(test 1
      Start  1: units
1: Test command: /ci/build/server_test
1: Working Directory: /ci/build
1: Test timeout computed to be: 1500
test 12
      Start 12: others
12: Test command: /ci/build/other_test
12: Test timeout computed to be: 1500
1: [ RUN      ] Server.stops
12: [ RUN      ] Other.waits
1: /ci/net/server_test.cc:8: Failure
1: Expected equality of these values:
12: /ci/net/other_test.cc:3: Failure
12: Failed
1:   got
1:     Which is: 1
1:   2
12: [  FAILED  ] Other.waits (1 ms)
1: had nothing
1: [  FAILED  ] Server.stops (3 ms)
 1/2 Test  #1: units ............................***Failed    0.05 sec
 2/2 Test #12: others ...........................***Failed    0.05 sec
)");
  ASSERT_EQ(log.failures.size(), 2u);
  EXPECT_EQ(signature_in(log.failures[0]), stops_signature);
  EXPECT_EQ(log.failures[1].test, "Other.waits");
  EXPECT_EQ(log.failures[1].entry, "others");
}

TEST(CiLog, Of_a_program_without_a_framework_keeps_its_most_telling_line) {
  const LoggedFailure logged = only_failure(
      "1/1 Test #1: sync ......***Failed    0.05 sec\nstarting\nerror: no peer\nbye\n\n");
  EXPECT_EQ(logged.entry, "sync");
  ASSERT_FALSE(logged.failures.empty());
  EXPECT_EQ(logged.failures.front().kind, FailureKind::exit_status);
  EXPECT_EQ(logged.failures.front().message, "error: no peer");
  EXPECT_EQ(logged.failures.front().expression, "");
}

TEST(CiLog, Of_bazel_names_the_target) {
  const LoggedFailure logged = only_failure(
      "FAIL: //net:sync_test (see /x/test.log)\n"
      "==================== Test output for //net:sync_test:\n"
      "prog: /ci/a.cc:3: int main(): Assertion `a' failed.\n" +
      std::string(80, '=') + "\nTarget //net:sync_test up-to-date:\n");
  EXPECT_EQ(logged.entry, "//net:sync_test");
  ASSERT_FALSE(logged.failures.empty());
  EXPECT_EQ(headline(logged.failures.front()), "a.cc:3: a");
}

TEST(CiLog, Of_boost_without_a_log_names_the_cases_of_the_report) {
  EXPECT_EQ(
      names_in("Test module \"m\" has failed with:\n"
               "  Test case \"net/starts\" has passed with:\n    1 assertion out of 1 passed\n"
               "  Test case \"net/stops\" has failed with:\n    1 assertion out of 1 failed\n"
               "  Test case \"net/waits\" was aborted with:\n    1 assertion out of 1 failed\n"),
      (Names{"net/stops", "net/waits"}));
}

TEST(CiLog, Gives_what_made_a_boost_case_abort_to_the_case) {
  const std::string output =
      "Running 1 test case...\nprog: a.cc:3: int main(): Assertion `a' failed.\n"
      "unknown location(0): fatal error: in \"net/stops\": signal: SIGABRT (application abort "
      "requested)\na.cc(2): last checkpoint\n\n*** 1 failure is detected in the test module "
      "\"m\"\n";
  const LoggedFailure logged = only_failure(output);
  EXPECT_EQ(logged.test, "net/stops");
  EXPECT_EQ(signature_in(logged),
            live_signature(Framework::boost_test, ProcessResult::End::exited, 201, output));
}

LoggedFailure catch2_failure(const std::string& heading) {
  const std::string ruler(79, '-'), dots(79, '.');
  return only_failure(ruler + "\n" + heading + ruler + "\na.cc:3\n" + dots +
                      "\n\na.cc:5: FAILED:\n  CHECK( a )\nwith expansion:\n  false\n");
}

TEST(CiLog, Of_catch2_joins_a_title_that_was_wrapped) {
  EXPECT_EQ(catch2_failure("Scenario: a server that has been asked to stop while it was still "
                           "starting\n          stops\n      Given: a server\n")
                .test,
            "Scenario: a server that has been asked to stop while it was still starting stops");
}

TEST(CiLog, Of_catch2_leaves_sections_out_of_the_name) {
  EXPECT_EQ(catch2_failure("server\n  stops\n    twice\n").test, "server");
  EXPECT_EQ(catch2_failure("Scenario: a\n      Given: b\n       When: c\n").test, "Scenario: a");
}

TEST(CiLog, Of_doctest_names_suite_and_case) {
  const LoggedFailure logged = only_failure(
      std::string(79, '=') + "\na.cc:3:\nTEST SUITE: net\nTEST CASE:  stops\n  twice\n\n" +
      "a.cc:5: ERROR: CHECK( a ) is NOT correct!\n  values: CHECK( false )\n\n" +
      std::string(79, '=') + "\n[doctest] test cases: 1 | 0 passed | 1 failed | 0 skipped\n");
  EXPECT_EQ(logged.test, "net/stops");
  EXPECT_EQ(logged.framework, Framework::doctest);
}

TEST(CiLog, Reads_an_assertion_that_was_copied_without_its_test) {
  const LoggedFailure logged = only_failure(
      "server_test.cc:8: Failure\nExpected equality of these values:\n  got\n    Which is: 1\n  2\n"
      "had nothing\n");
  EXPECT_EQ(logged.test, "");
  EXPECT_EQ(signature_in(logged), stops_signature);
}

void expect_refused(std::string_view text, std::string_view words) {
  const auto log = read_ci_log(text);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().kind, ErrorKind::usage);
  EXPECT_NE(log.error().what.find(words), std::string::npos) << log.error().what;
  EXPECT_NE(log.error().next, "");
}

TEST(CiLog, Refuses_an_empty_file) {
  expect_refused("", "is empty");
  expect_refused(" \r\n\n", "is empty");
}

TEST(CiLog, Refuses_what_is_not_text) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7);
  expect_refused(bytes, "not text");
}

TEST(CiLog, Says_how_to_unpack_an_archive) {
  expect_refused("PK\x03\x04 and more", "ZIP archive");
  expect_refused("\x1f\x8b and more", "compressed");
}

TEST(CiLog, Refuses_the_log_of_a_build_that_failed) {
  expect_refused(
      "[1/2] Building CXX object a.o\n/ci/a.cc:12:5: error: expected ';' before 'return'\n"
      "ninja: build stopped: subcommand failed.\n",
      "a.cc:12:5: error: expected ';'");
}

TEST(CiLog, Refuses_a_log_without_tests) {
  expect_refused("Cloning into 'x'...\nPost job cleanup.\n", "no test");
}

}  // namespace
}  // namespace unflake
