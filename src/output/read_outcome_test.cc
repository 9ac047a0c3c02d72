#include "output/read_outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace unflake {
namespace {

using End = ProcessResult::End;

Test test_of(Framework framework) {
  Test test;
  test.id = {"server_test", "Server.stops"};
  test.framework = framework;
  return test;
}

ProcessResult ended(End end, int code, std::string output = "") {
  ProcessResult process;
  process.end = end;
  process.code = code;
  process.duration = std::chrono::milliseconds(5);
  process.output.total = output.size();
  process.output.head = std::move(output);
  return process;
}

Outcome outcome_of(Framework framework, End end, int code, std::string output = "") {
  return read_outcome(test_of(framework), ended(end, code, std::move(output)));
}

void expect_kinds(const Outcome& outcome, OutcomeKind kind, FailureKind primary) {
  EXPECT_EQ(outcome.kind, kind);
  ASSERT_FALSE(outcome.failures.empty());
  EXPECT_EQ(outcome.failures.front().kind, primary) << headline(outcome.failures.front());
  EXPECT_EQ(outcome.signature, signature_of(outcome.failures.front()));
}

constexpr const char* gtest_failed = R"([==========] Running 1 test from 1 test suite.
[ RUN      ] Server.stops
server_test.cc:9: Failure
Value of: ok
  Actual: false
Expected: true
[  FAILED  ] Server.stops (0 ms)
[==========] 1 test from 1 test suite ran. (0 ms total)
[  PASSED  ] 0 tests.
)";

constexpr const char* asan_report =
    "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2\n"
    "    #0 0x1 in Server::push(int) server.cc:12\n\n==7==ABORTING\n";

constexpr const char* undefined =
    "server.cc:21:49: runtime error: shift exponent 40 is too large for 32-bit type 'int'\n";

TEST(ReadOutcome, Passes_a_test_that_exits_with_0_whatever_it_says) {
  const Outcome outcome = outcome_of(Framework::gtest, End::exited, 0, gtest_failed);
  EXPECT_EQ(outcome.kind, OutcomeKind::pass);
  EXPECT_TRUE(outcome.failures.empty());
  EXPECT_TRUE(outcome.signature.empty());
  EXPECT_EQ(outcome.duration, std::chrono::milliseconds(5));
}

constexpr const char* gtest_begun =
    "[==========] Running 1 test from 1 test suite.\n[ RUN      ] Server.stops\n";
constexpr const char* gtest_ended =
    "[       OK ] Server.stops (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n"
    "[  PASSED  ] 1 test.\n";

void expect_early_end(Framework framework, const std::string& output) {
  const Outcome outcome = outcome_of(framework, End::exited, 0, output);
  expect_kinds(outcome, OutcomeKind::fail, FailureKind::exit_status);
  if (!outcome.failed()) return;
  EXPECT_EQ(outcome.failures[0].expression, "exit status 0") << output;
  EXPECT_EQ(outcome.signature, outcome_of(Framework::gtest, End::exited, 0, gtest_begun).signature);
}

TEST(ReadOutcome, A_line_about_the_beginning_of_a_test_does_not_tell_why_it_exited) {
  const auto words = [](Framework framework, const std::string& output) {
    return outcome_of(framework, End::exited, 3, output).failures.at(0).message;
  };
  for (const auto& [framework, output] :
       {std::pair(Framework::gtest, gtest_begun),
        {Framework::catch2, "Filters: \"stops\"\nRandomness seeded to: 7\n"},
        {Framework::doctest,
         "[doctest] doctest version is \"2.4.9\"\n[doctest] run with \"--help\" for options\n"}})
    EXPECT_THAT(words(framework, output), testing::StartsWith("the process exited before"))
        << output;
  EXPECT_EQ(words(Framework::gtest, gtest_begun + std::string("cannot open the file\n")),
            "cannot open the file");
}

TEST(ReadOutcome, Fails_what_exits_with_0_before_its_framework_reports_an_end) {
  const std::string begun = gtest_begun, failed = "a.cc:3: Failure\nFailed\n";
  expect_early_end(Framework::gtest, begun);
  expect_early_end(Framework::gtest, begun + "[  PAS\nnoise");
  expect_early_end(Framework::gtest, begun + failed);
  expect_early_end(Framework::gtest, begun + gtest_ended + begun);  // --gtest_repeat
  expect_early_end(Framework::gtest,
                   "[==========] Running 2 tests from 1 test suite.\n"
                   "[ RUN      ] A.a\n[       OK ] A.a (0 ms)\n");
  expect_early_end(Framework::gtest,
                   "\x1b[0;32m[==========] \x1b[mRunning 1 test from 1 test suite."
                   "\n\x1b[0;32m[ RUN      ] \x1b[mServer.stops\n");
  expect_early_end(Framework::catch2, "Filters: \"stops\"\n");
  expect_early_end(Framework::catch2, "main says hello\nFilters: \"stops\"\nsome output\n");
  expect_early_end(Framework::catch2, "Filters: \"stops\"\nRandomness seeded to: 7\n");
  expect_early_end(Framework::doctest,
                   "[doctest] doctest version is \"2.4.9\"\n"
                   "[doctest] run with \"--help\" for options\n");
  expect_early_end(Framework::boost_test,
                   "Running 1 test case...\nEntering test module \"m\"\n"
                   "a.cc(5): Entering test case \"stops\"\n");
}

TEST(ReadOutcome, Believes_the_exit_status_where_the_framework_has_said_all_or_nothing) {
  const std::string begun = gtest_begun, ended = gtest_ended;
  const auto expect_pass = [](Framework framework, const std::string& output) {
    EXPECT_EQ(outcome_of(framework, End::exited, 0, output).kind, OutcomeKind::pass) << output;
  };
  for (const Framework framework : {Framework::gtest, Framework::catch2, Framework::doctest,
                                    Framework::boost_test, Framework::ctest, Framework::command})
    for (const char* output : {"", "all is well\n", "[==========]", "Filters", "Entering"})
      expect_pass(framework, output);
  expect_pass(Framework::command, begun);
  expect_pass(Framework::gtest, begun + std::string("\0\xff no line feed", 16) + ended);
  expect_pass(Framework::gtest, begun + begun + ended);  // a child of the test is a suite, too
  expect_pass(Framework::gtest, begun + "[       OK ] Server.stops (0 ms)\n");  // a listener exits
  expect_pass(Framework::gtest,
              "[==========] 1 test from 1 test suite ran. (0 ms total)\n"
              "[  PASSED  ] 1 test.\n");  // --gtest_brief
  expect_pass(Framework::catch2,
              "Filters: stops\n=====\nAll tests passed (1 assertion in 1 test "
              "case)\n\n");
  expect_pass(Framework::catch2, "a log\nFilters: none\n");  // of a test with a silent reporter
  expect_pass(Framework::catch2, "Filters: \"a\"\nPassed 1 test case with 1 assertion.\n");
  expect_pass(Framework::doctest, "[doctest] doctest version is \"2.4.9\"\n");  // --version
  expect_pass(Framework::boost_test, "Running 1 test case...\n");  // the report goes to a file
  expect_pass(Framework::boost_test,
              "a.cc(5): Entering test case \"stops\"\n"
              "a.cc(5): Leaving test case \"stops\"; testing time: 4us\n");
}

TEST(ReadOutcome, Believes_the_exit_status_where_nobody_can_know_better) {
  unflake::Test test = test_of(Framework::gtest);
  ProcessResult process = ended(End::exited, 0, gtest_begun);
  test.may_exit = true;
  EXPECT_EQ(read_outcome(test, process).kind, OutcomeKind::pass);
  test.may_exit = false;
  test.rule.pass_patterns = {"RUN"};
  EXPECT_EQ(read_outcome(test, process).kind, OutcomeKind::pass);
  test.rule.pass_patterns.clear();
  process.output.total += 1'000'000;  // what was not kept may be the end
  EXPECT_EQ(read_outcome(test, process).kind, OutcomeKind::pass);
}

TEST(ReadOutcome, Gives_what_is_not_built_one_signature_wherever_it_is) {
  const auto signature_at = [](const std::string& folder) {
    unflake::Test test = test_of(Framework::ctest);
    test.obstacle = "not built: " + folder + "/a_test; cmake --build " + folder;
    ProcessResult process = ended(End::not_started, ENOENT);
    process.error = test.obstacle;
    const Outcome outcome = read_outcome(test, process);
    EXPECT_EQ(headline(outcome.failures[0]), test.obstacle);
    return outcome.signature;
  };
  EXPECT_EQ(signature_at("build"), signature_at("/home/ci/out"));
}

TEST(ReadOutcome, Keeps_reports_of_a_pass) {
  const Outcome outcome = outcome_of(Framework::gtest, End::exited, 0, undefined);
  EXPECT_EQ(outcome.kind, OutcomeKind::pass);
  ASSERT_EQ(outcome.failures.size(), 1u);
  EXPECT_TRUE(outcome.signature.empty());
}

TEST(ReadOutcome, Explains_a_failure_by_the_frameworks_check) {
  expect_kinds(outcome_of(Framework::gtest, End::exited, 1, gtest_failed), OutcomeKind::fail,
               FailureKind::assertion);
}

TEST(ReadOutcome, Recognises_any_framework_in_a_command) {
  for (const Framework framework : {Framework::command, Framework::ctest}) {
    expect_kinds(outcome_of(framework, End::exited, 1, gtest_failed), OutcomeKind::fail,
                 FailureKind::assertion);
    expect_kinds(outcome_of(framework, End::exited, 1,
                            "a.cc(7): error: in \"su/a\": check a==b has failed\n"),
                 OutcomeKind::fail, FailureKind::assertion);
    expect_kinds(outcome_of(framework, End::exited, 1, "a.cc:5: FAILED:\n  CHECK( ok )\n\n"),
                 OutcomeKind::fail, FailureKind::assertion);
  }
}

TEST(ReadOutcome, Reads_coloured_output) {
  const Outcome outcome = outcome_of(
      Framework::boost_test, End::exited, 201,
      "a.cc(7): \x1b[1;31;49merror: in \"su/a\": check a==b has failed\x1b[0;39;49m\n\n"
      "\x1b[1;31;49m*** 1 failure is detected in the test module \"mod\"\n\x1b[0;39;49m");
  expect_kinds(outcome, OutcomeKind::fail, FailureKind::assertion);
  EXPECT_EQ(outcome.failures[0].expression, "a==b");
}

TEST(ReadOutcome, Names_the_signal_of_a_silent_crash) {
  const Outcome outcome = outcome_of(Framework::gtest, End::signalled, SIGSEGV);
  expect_kinds(outcome, OutcomeKind::crash, FailureKind::signal);
  EXPECT_EQ(headline(outcome.failures[0]), "SIGSEGV");
}

TEST(ReadOutcome, Explains_an_abort_by_its_last_words) {
  const Outcome outcome = outcome_of(Framework::catch2, End::signalled, SIGABRT,
                                     "t: a.cc:3: int f(): Assertion `x' failed.\nb.cc:11: FAILED:\n"
                                     "due to a fatal error condition:\n  SIGABRT - Abort signal\n\n"
                                     "test cases: 1 | 1 failed\n");
  expect_kinds(outcome, OutcomeKind::crash, FailureKind::assertion);
  EXPECT_EQ(outcome.failures[0].file, "a.cc");
  EXPECT_EQ(outcome.failures.size(), 2u);
}

TEST(ReadOutcome, Does_not_explain_a_bad_access_by_an_earlier_check) {
  const std::string soft = "[ RUN      ] A.b\na.cc:3: Failure\nFailed\n";
  expect_kinds(outcome_of(Framework::gtest, End::signalled, SIGSEGV, soft), OutcomeKind::crash,
               FailureKind::signal);
  expect_kinds(outcome_of(Framework::gtest, End::signalled, SIGABRT, soft), OutcomeKind::crash,
               FailureKind::assertion);
}

TEST(ReadOutcome, Explains_a_signal_that_boost_caught_by_the_last_words) {
  expect_kinds(
      outcome_of(Framework::boost_test, End::exited, 201,
                 "t: a.cc:3: int f(): Assertion `x' failed.\n"
                 "unknown location(0): fatal error: in \"a\": signal: SIGABRT (application abort "
                 "requested)\na.cc(5): last checkpoint\n\n*** 1 failure is detected\n"),
      OutcomeKind::crash, FailureKind::assertion);
}

TEST(ReadOutcome, Takes_the_crash_of_a_child_process_for_a_failure) {
  expect_kinds(outcome_of(Framework::command, End::exited, 1, "free(): invalid pointer\n"),
               OutcomeKind::fail, FailureKind::signal);
}

TEST(ReadOutcome, Takes_a_signal_that_boost_caught_for_a_crash) {
  expect_kinds(
      outcome_of(Framework::boost_test, End::exited, 201,
                 "unknown location(0): fatal error: in \"a\": signal: SIGABRT (application abort "
                 "requested)\na.cc(5): last checkpoint\n\n*** 1 failure is detected\n"),
      OutcomeKind::crash, FailureKind::signal);
}

TEST(ReadOutcome, Prefers_the_report_that_ended_the_process) {
  const std::string soft = "[ RUN      ] A.b\na.cc:3: Failure\nFailed\n";
  expect_kinds(outcome_of(Framework::gtest, End::exited, 1, soft + undefined + asan_report),
               OutcomeKind::fail, FailureKind::address_sanitizer);
  expect_kinds(outcome_of(Framework::gtest, End::signalled, SIGABRT, soft + asan_report),
               OutcomeKind::crash, FailureKind::address_sanitizer);
}

TEST(ReadOutcome, Prefers_the_check_over_reports_that_the_test_survived) {
  const Outcome outcome =
      outcome_of(Framework::gtest, End::exited, 1, std::string(undefined) + gtest_failed);
  expect_kinds(outcome, OutcomeKind::fail, FailureKind::assertion);
  EXPECT_EQ(outcome.failures.size(), 2u);
}

TEST(ReadOutcome, Gives_all_time_outs_without_a_place_one_signature) {
  const Outcome silent = outcome_of(Framework::gtest, End::timed_out, 0);
  const Outcome talking = outcome_of(Framework::gtest, End::timed_out, 0, "half a li");
  expect_kinds(silent, OutcomeKind::timeout, FailureKind::timeout);
  EXPECT_EQ(silent.signature, talking.signature);
}

TEST(ReadOutcome, Places_a_time_out_where_the_framework_was_told_to_stop) {
  const Outcome outcome = outcome_of(Framework::catch2, End::timed_out, 0,
                                     "a.cc:13: FAILED:\n  {Unknown expression}\n"
                                     "due to a fatal error condition:\n"
                                     "  SIGTERM - Termination request signal\n\n");
  expect_kinds(outcome, OutcomeKind::timeout, FailureKind::timeout);
  EXPECT_EQ(headline(outcome.failures[0]), "timeout after a.cc:13");
  EXPECT_EQ(outcome.failures.size(), 1u);
}

TEST(ReadOutcome, Says_what_to_do_when_nothing_was_started) {
  ProcessResult process = ended(End::not_started, ENOENT);
  process.error = "cannot run build/server_test: No such file or directory";
  const Outcome outcome = read_outcome(test_of(Framework::gtest), process);
  expect_kinds(outcome, OutcomeKind::fail, FailureKind::not_started);
  EXPECT_EQ(outcome.failures[0].message,
            "cannot run build/server_test: No such file or directory; build the test, then list "
            "the suite again");
}

TEST(ReadOutcome, Skips_what_was_cancelled) {
  const Outcome outcome = outcome_of(Framework::gtest, End::cancelled, 0, gtest_failed);
  EXPECT_EQ(outcome.kind, OutcomeKind::skipped);
  EXPECT_EQ(outcome.reason, "cancelled");
  EXPECT_FALSE(outcome.failed());
}

TEST(ReadOutcome, Skips_what_Boost_Test_skipped_and_charges_no_failure_of_another_case_to_it) {
  const std::string precondition =
      "Running 1 test case...\n\nTest module \"m\" has passed with:\n"
      "  3 test cases out of 3 skipped\n\n  Test case \"Server.stops\" was skipped\n";
  EXPECT_EQ(outcome_of(Framework::boost_test, End::exited, 0, precondition).kind,
            OutcomeKind::skipped);
  const std::string dependency =
      "Running 2 test cases...\nbt.cc(6): error: in \"dep\": check 1 == 2 has failed [1 != 2]\n\n"
      "  Test case \"dep\" has failed with:\n    1 assertion out of 1 failed\n\n"
      "  Test case \"Server.stops\" was skipped\n";
  const Outcome outcome = outcome_of(Framework::boost_test, End::exited, 201, dependency);
  EXPECT_EQ(outcome.kind, OutcomeKind::skipped);
  EXPECT_EQ(outcome.reason, "a test that it depends on failed");
}

TEST(ReadOutcome, Skips_a_gtest_that_skipped_itself) {
  const std::string text =
      "[ RUN      ] Server.skip\nserver_test.cc:24: Skipped\nno network here\n"
      "[  SKIPPED ] Server.skip (0 ms)\n[  PASSED  ] 0 tests.\n";
  const Outcome outcome = outcome_of(Framework::gtest, End::exited, 0, text);
  EXPECT_EQ(outcome.kind, OutcomeKind::skipped);
  EXPECT_EQ(outcome.reason, "no network here");
  EXPECT_EQ(outcome_of(Framework::gtest, End::exited, 1, text).kind, OutcomeKind::fail);
  EXPECT_EQ(outcome_of(Framework::command, End::exited, 0, text).kind, OutcomeKind::pass);
}

TEST(ReadOutcome, Passes_a_run_of_many_cases_of_which_some_skipped_themselves) {
  EXPECT_EQ(outcome_of(Framework::gtest, End::exited, 0,
                       "[ RUN      ] A.skips\na.cc:24: Skipped\nno network here\n"
                       "[  SKIPPED ] A.skips (0 ms)\n[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n"
                       "[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n"
                       "[  SKIPPED ] A.skips\n")
                .kind,
            OutcomeKind::pass);
  EXPECT_EQ(outcome_of(Framework::catch2, End::exited, 0,
                       "a.cc:5: SKIPPED:\nexplicitly with message:\n  no display\n\n"
                       "test cases: 2 | 1 passed | 1 skipped\n")
                .kind,
            OutcomeKind::pass);
}

TEST(ReadOutcome, Skips_a_catch2_test_that_skipped_itself) {
  const std::string text = "a.cc:5: SKIPPED:\nexplicitly with message:\n  no display\n\n";
  const Outcome outcome = outcome_of(Framework::catch2, End::exited, 4, text);
  EXPECT_EQ(outcome.kind, OutcomeKind::skipped);
  EXPECT_EQ(outcome.reason, "no display");
  EXPECT_EQ(outcome_of(Framework::catch2, End::exited, 4, "a.cc:5: FAILED:\n  CHECK( a )\n").kind,
            OutcomeKind::fail);
}

struct RunOfNothing {
  Framework framework;
  int status;
  const char* text;
};

constexpr RunOfNothing runs_of_nothing[] = {
    {Framework::gtest, 0,
     "[==========] Running 0 tests from 0 test suites.\n[  PASSED  ] 0 tests.\n"},
    {Framework::catch2, 0, "No test cases matched 'nope'\n=====\nNo tests ran\n"},
    {Framework::catch2, 3, "No test cases matched 'nope'\n=====\nNo tests ran\n"},
    {Framework::doctest, 0, "[doctest] test cases: 0 | 0 passed | 0 failed | 15 skipped\n"},
    {Framework::boost_test, 200,
     "Test setup error: no test cases matching filter or all test cases were disabled\n"},
};

TEST(ReadOutcome, Never_passes_a_test_that_is_not_in_the_binary) {
  for (const auto& [framework, status, text] : runs_of_nothing)
    expect_kinds(outcome_of(framework, End::exited, status, text), OutcomeKind::fail,
                 FailureKind::not_started);
}

TEST(ReadOutcome, Leaves_a_ctest_entry_that_ran_no_case_to_its_exit_status) {
  for (const auto& [framework, status, text] : runs_of_nothing) {
    unflake::Test entry = test_of(framework);
    entry.is_entry = true;
    const Outcome outcome = read_outcome(entry, ended(End::exited, status, text));
    if (status == 0)
      EXPECT_EQ(outcome.kind, OutcomeKind::pass) << text;
    else
      expect_kinds(outcome, OutcomeKind::fail, FailureKind::exit_status);
  }
}

TEST(ReadOutcome, Applies_what_ctest_declares) {
  unflake::Test test = test_of(Framework::ctest);
  test.rule.fail_patterns = {"ERROR"};
  expect_kinds(read_outcome(test, ended(End::exited, 0, "an ERROR\n")), OutcomeKind::fail,
               FailureKind::output_pattern);
  test.rule = {};
  test.rule.will_fail = true;
  EXPECT_EQ(read_outcome(test, ended(End::exited, 1)).kind, OutcomeKind::pass);
  EXPECT_EQ(read_outcome(test, ended(End::signalled, SIGSEGV)).kind, OutcomeKind::crash);
  EXPECT_EQ(read_outcome(test, ended(End::timed_out, 0)).kind, OutcomeKind::timeout);
}

TEST(ReadOutcome, Prefers_the_tests_own_words_over_a_pattern) {
  unflake::Test test = test_of(Framework::ctest);
  test.rule.pass_patterns = {"all passed"};
  const Outcome outcome = read_outcome(test, ended(End::exited, 1, gtest_failed));
  expect_kinds(outcome, OutcomeKind::fail, FailureKind::assertion);
  EXPECT_EQ(outcome.failures.back().kind, FailureKind::output_pattern);
}

TEST(ReadOutcome, Explains_an_exit_status_by_the_most_telling_line) {
  const auto headline_of = [](std::string output) {
    return headline(outcome_of(Framework::command, End::exited, 3, output).failures[0]);
  };
  EXPECT_EQ(headline_of("connecting\nERROR: no route\nbye\n"), "exit status 3: ERROR: no route");
  EXPECT_EQ(headline_of("0 failures\nno errors\nerrors: 0\ngave up\n"), "exit status 3: gave up");
  EXPECT_EQ(headline_of("Traceback (most recent call last):\n  File \"x.py\"\nKeyError: 'a'\n"),
            "exit status 3: KeyError: 'a'");
  EXPECT_EQ(headline_of(""), "exit status 3");
}

TEST(ReadOutcome, Tells_exit_statuses_apart) {
  EXPECT_NE(outcome_of(Framework::command, End::exited, 3).signature,
            outcome_of(Framework::command, End::exited, 4).signature);
  EXPECT_EQ(headline(outcome_of(Framework::command, End::exited, 139).failures[0]),
            "exit status 139 (128 + SIGSEGV)");
}

TEST(ReadOutcome, Makes_up_no_line_across_what_was_not_kept) {
  ProcessResult process = ended(End::exited, 1);
  process.output.head = "a.cc:1: Failure\nFailed\nb.cc:2";
  process.output.tail = "2: Failure\nFailed\nc.cc:3: Failure\nFailed\n[  PASSED  ] 0 tests.\n";
  process.output.total = 10'000'000;
  const Outcome outcome = read_outcome(test_of(Framework::gtest), process);
  ASSERT_EQ(outcome.failures.size(), 2u);
  EXPECT_EQ(outcome.failures[0].file, "a.cc");
  EXPECT_EQ(outcome.failures[1].file, "c.cc");
}

TEST(ReadOutcome, Reads_standard_error_that_was_kept_apart) {
  ProcessResult process = ended(End::signalled, SIGABRT, "working\n");
  process.errors.head = "t: a.cc:3: int f(): Assertion `x' failed.\n";
  process.errors.total = process.errors.head.size();
  expect_kinds(read_outcome(test_of(Framework::gtest), process), OutcomeKind::crash,
               FailureKind::assertion);
}

ProcessResult hung_at(int line, const std::string& function = "Queue::pop") {
  ProcessResult process;
  process.end = ProcessResult::End::timed_out;
  process.thread_stacks = {
      {100, 101, "worker", {{"work", "/src/pool.cc", 5, true}}, ""},
      {100, 100, "main", {{"poll", "", 0, false}, {function, "/src/queue.cc", line, true}}, ""}};
  return process;
}

TEST(TimeoutWithStacks, Is_at_the_project_code_that_the_main_thread_was_in) {
  const Outcome outcome = read_outcome(unflake::Test(), hung_at(57));
  EXPECT_EQ(outcome.failures[0].function, "Queue::pop");
  EXPECT_EQ(outcome.failures[0].line, 57);
  EXPECT_EQ(headline(outcome.failures[0]), "timeout in Queue::pop queue.cc:57");
}

TEST(TimeoutWithStacks, Is_the_same_failure_at_another_line_of_the_function) {
  EXPECT_EQ(read_outcome(unflake::Test(), hung_at(57)).signature,
            read_outcome(unflake::Test(), hung_at(58)).signature);
  EXPECT_NE(read_outcome(unflake::Test(), hung_at(57)).signature,
            read_outcome(unflake::Test(), hung_at(57, "Queue::push")).signature);
}

TEST(TimeoutWithStacks, Without_project_code_on_the_stack_is_a_plain_one) {
  ProcessResult process = hung_at(57);
  process.thread_stacks[1].frames.pop_back();
  ProcessResult plain;
  plain.end = ProcessResult::End::timed_out;
  EXPECT_EQ(read_outcome(unflake::Test(), process).signature,
            read_outcome(unflake::Test(), plain).signature);
}

}  // namespace
}  // namespace unflake
