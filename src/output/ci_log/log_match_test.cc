#include "output/ci_log/ci_log.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

unflake::Test test_of(Framework framework, std::string name) {
  unflake::Test test;
  test.id = {"server_test", std::move(name)};
  test.framework = framework;
  return test;
}

LoggedFailure logged_as(Framework framework, std::string test, std::string entry = "") {
  LoggedFailure logged;
  logged.framework = framework;
  logged.test = std::move(test);
  logged.entry = std::move(entry);
  return logged;
}

Failure failure_at(FailureKind kind, std::string file, int line, std::string expression = "") {
  Failure failure;
  failure.kind = kind;
  failure.file = std::move(file);
  failure.line = line;
  failure.expression = std::move(expression);
  return failure;
}

TEST(LogMatch, Knows_a_test_by_its_name) {
  const auto test = test_of(Framework::gtest, "Server.stops");
  EXPECT_TRUE(is_named(logged_as(Framework::gtest, "Server.stops"), test));
  EXPECT_FALSE(is_named(logged_as(Framework::gtest, "Server.stops_late"), test));
  EXPECT_FALSE(is_named(logged_as(Framework::gtest, "Other.Server.stops"), test));
}

TEST(LogMatch, Knows_a_case_by_the_entry_that_ctest_made_of_it) {
  EXPECT_TRUE(is_named(logged_as(Framework::command, "", "Server.stops"),
                       test_of(Framework::gtest, "Server.stops")));
}

TEST(LogMatch, Knows_an_entry_by_any_of_its_cases) {
  const auto logged = logged_as(Framework::gtest, "Server.stops", "units");
  EXPECT_TRUE(is_named(logged, test_of(Framework::ctest, "units")));
  EXPECT_TRUE(is_named(logged, test_of(Framework::gtest, "units/Server.stops")));
  EXPECT_FALSE(is_named(logged, test_of(Framework::gtest, "units/Server.starts")));
}

TEST(LogMatch, Knows_a_case_whose_sections_a_junit_file_names) {
  EXPECT_TRUE(is_named(logged_as(Framework::catch2, "server/stops twice"),
                       test_of(Framework::catch2, "server")));
}

TEST(LogMatch, Knows_a_title_whose_blanks_a_reporter_changed) {
  EXPECT_TRUE(is_named(logged_as(Framework::catch2, "two lines"),
                       test_of(Framework::catch2, " two\nlines ")));
}

TEST(LogMatch, Knows_a_doctest_case_without_its_suite) {
  EXPECT_TRUE(
      is_named(logged_as(Framework::doctest, "stops"), test_of(Framework::doctest, "net/stops")));
}

TEST(LogMatch, Takes_tests_of_the_same_name_together) {
  EXPECT_TRUE(
      is_named(logged_as(Framework::doctest, "stops"), test_of(Framework::doctest, "stops #2")));
}

TEST(LogMatch, Knows_the_program_of_a_bazel_target) {
  EXPECT_TRUE(is_named(logged_as(Framework::command, "", "//net:server_test"),
                       test_of(Framework::command, "server_test")));
  EXPECT_FALSE(is_named(logged_as(Framework::command, "", "//net:my_server_test"),
                        test_of(Framework::command, "server_test")));
}

TEST(LogMatch, Finds_a_failure_whatever_the_folder_is) {
  EXPECT_TRUE(tells_of(failure_at(FailureKind::assertion, "/ci/net/a.cc", 3, "a == b"),
                       failure_at(FailureKind::assertion, "/home/me/net/a.cc", 3, "a == b")));
}

TEST(LogMatch, Tells_failures_at_other_lines_apart) {
  EXPECT_FALSE(tells_of(failure_at(FailureKind::assertion, "a.cc", 3, "a == b"),
                        failure_at(FailureKind::assertion, "a.cc", 4, "a == b")));
}

TEST(LogMatch, Takes_any_place_for_that_of_a_time_out_without_one) {
  EXPECT_TRUE(tells_of(failure_at(FailureKind::timeout, "", 0),
                       failure_at(FailureKind::timeout, "a.cc", 4)));
  EXPECT_FALSE(tells_of(failure_at(FailureKind::timeout, "", 0),
                        failure_at(FailureKind::assertion, "a.cc", 4)));
}

TEST(LogMatch, Takes_any_status_for_one_that_the_log_does_not_tell) {
  EXPECT_TRUE(tells_of(failure_at(FailureKind::exit_status, "", 0),
                       failure_at(FailureKind::exit_status, "", 0, "exit status 3")));
}

CiLog log_of(std::vector<LoggedFailure> failures) {
  CiLog log;
  log.failures = std::move(failures);
  return log;
}

TEST(LogMatch, Gives_all_failures_of_a_test) {
  const CiLog log = log_of({logged_as(Framework::gtest, "A.b"), logged_as(Framework::gtest, "A.c"),
                            logged_as(Framework::gtest, "A.b")});
  const auto found = logged_failures_of(test_of(Framework::gtest, "A.b"), log);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 2u);
}

TEST(LogMatch, Gives_a_test_the_failures_of_a_log_without_names) {
  const auto found = logged_failures_of(test_of(Framework::gtest, "A.b"),
                                        log_of({logged_as(Framework::command, "")}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 1u);
}

TEST(LogMatch, Says_which_tests_a_log_of_another_program_names) {
  const auto found = logged_failures_of(test_of(Framework::gtest, "A.b"),
                                        log_of({logged_as(Framework::gtest, "Other.test")}));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("server_test:A.b"), std::string::npos);
  EXPECT_NE(found.error().next.find("Other.test"), std::string::npos);
}

TEST(LogMatch, Says_that_a_log_shows_only_passing_tests) {
  const auto found = logged_failures_of(test_of(Framework::gtest, "A.b"), CiLog{{}, true, 3});
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("passing"), std::string::npos);
}

TEST(LogMatch, Finds_the_tests_that_a_log_means) {
  const std::vector<unflake::Test> tests{test_of(Framework::gtest, "A.a"),
                                         test_of(Framework::gtest, "A.b"),
                                         test_of(Framework::gtest, "A.c")};
  const auto named =
      tests_named_in(log_of({logged_as(Framework::gtest, "A.c"), logged_as(Framework::gtest, "A.b"),
                             logged_as(Framework::gtest, "A.c")}),
                     tests);
  ASSERT_TRUE(named);
  EXPECT_EQ(*named, (std::vector<size_t>{2, 1}));
}

TEST(LogMatch, Asks_for_the_test_when_the_log_does_not_name_it) {
  const auto named = tests_named_in(log_of({logged_as(Framework::command, "")}),
                                    {test_of(Framework::gtest, "A.a")});
  ASSERT_FALSE(named);
  EXPECT_NE(named.error().next.find("name the test"), std::string::npos);
}

}  // namespace
}  // namespace unflake
