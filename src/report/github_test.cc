#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "golden/make_events.h"
#include "report/consumers.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace golden;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Failure failed_check_at(const std::string& file, int line, const std::string& expression) {
  return {FailureKind::assertion, file, line, "", expression, ""};
}

TestEnded ended(const TestPtr& test, Verdict verdict, int passes, int failures) {
  TestEnded end;
  end.test = test;
  end.verdict = verdict;
  end.tally.passes = passes;
  end.tally.failures = failures;
  return end;
}

TestEnded gated(const TestPtr& test, GateKind kind, std::string text = "") {
  TestEnded end = ended(test, Verdict::flaky, 1, 1);
  end.gate = GateDecision{};
  end.gate->kind = kind;
  end.gate->text = std::move(text);
  return end;
}

void fail_in(Consumer& consumer, const std::string& name, TestEnded (*end)(const TestPtr&)) {
  const TestPtr test = make_test("suite", name);
  consumer.on(
      golden::failing(test, 1, failed_check_at("/src/a_test.cc", 42, name + " == 1"), "aa"));
  consumer.on(end(test));
}

TestEnded broken(const TestPtr& test) {
  return ended(test, Verdict::failed, 0, 2);
}
TestEnded flaky(const TestPtr& test) {
  return ended(test, Verdict::flaky, 1, 1);
}
TestEnded known(const TestPtr& test) {
  return gated(test, GateKind::flaky_known, "until 2026-03-20");
}

class Annotations : public ::testing::Test {
 protected:
  std::string end() {
    annotations.on(SessionEnded{});
    return sink.text;
  }
  size_t count(const std::string& text, const std::string& start) {
    size_t lines = 0;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines += line.starts_with(start);
    return lines;
  }

  StringSink sink;
  GithubAnnotations annotations{
      sink, {[](const std::string& file) { return file.substr(file.rfind('/') + 1); }, "s3cret"}};
};

TEST_F(Annotations, A_failure_is_shown_at_its_line) {
  fail_in(annotations, "Push", broken);
  EXPECT_THAT(end(), HasSubstr("::error title=failed%3A suite%3APush,file=a_test.cc,line=42::"
                               "a_test.cc:42: Push == 1%0A2 of 2 runs failed\n"));
}

TEST_F(Annotations, A_flaky_test_is_a_warning_and_a_known_one_a_notice) {
  fail_in(annotations, "Known", known);
  fail_in(annotations, "New", flaky);
  fail_in(annotations, "Broken", broken);
  const std::string text = end();
  EXPECT_LT(text.find("::error"), text.find("::warning"));
  EXPECT_LT(text.find("::warning"), text.find("::notice"));
  EXPECT_THAT(text, HasSubstr("until 2026-03-20"));
}

TEST_F(Annotations, No_more_of_a_level_than_GitHub_shows) {
  for (int i = 0; i < 14; ++i) fail_in(annotations, "Case" + std::to_string(i), broken);
  fail_in(annotations, "Flaky", flaky);
  const std::string text = end();
  EXPECT_EQ(count(text, "::error"), 10u);
  EXPECT_EQ(count(text, "::warning"), 1u);
  EXPECT_THAT(text, HasSubstr("4 more tests are not annotated"));
}

TEST_F(Annotations, Hostile_names_are_no_commands) {
  fail_in(annotations, "a,b::c%0A\n::add-mask::x", broken);
  const std::string text = end();
  EXPECT_EQ(count(text, "::add-mask"), 0u);
  EXPECT_THAT(text, HasSubstr("suite%3Aa%2Cb%3A%3Ac%250A"));
}

TEST_F(Annotations, What_tests_print_is_not_obeyed) {
  annotations.on(SessionStarted{});
  fail_in(annotations, "Push", broken);
  const std::string text = end();
  EXPECT_THAT(text, StartsWith("::stop-commands::s3cret\n"));
  EXPECT_LT(text.find("::s3cret::\n"), text.find("::error"));
}

TEST_F(Annotations, A_session_that_passed_has_none) {
  const TestPtr test = make_test("suite", "Push");
  annotations.on(passing(test));
  annotations.on(ended(test, Verdict::passed, 1, 0));
  EXPECT_EQ(end(), "::s3cret::\n");
}

class Summary : public ::testing::Test {
 protected:
  std::string end(GithubSummary& summary) {
    SessionEnded over;
    over.failed = 1;
    over.passed = 3;
    summary.on(over);
    EXPECT_TRUE(summary.written());
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TempFolder folder;
  std::string path = folder.file("summary.md");
};

TEST_F(Summary, Tells_what_failed_in_a_table) {
  GithubSummary summary(path);
  SessionStarted started;
  started.target = "suite";
  summary.on(started);
  fail_in(summary, "Push", broken);
  const std::string text = end(summary);
  EXPECT_THAT(text, HasSubstr("### unflake: `suite`"));
  EXPECT_THAT(text, HasSubstr("3 passed, 1 failed"));
  EXPECT_THAT(text,
              HasSubstr("| failed | `suite:Push` | `a_test.cc:42: Push == 1` | 2/2 runs failed"));
}

TEST_F(Summary, Stands_behind_what_is_there_already) {
  std::ofstream(path) << "from another command\n";
  GithubSummary summary(path);
  EXPECT_THAT(end(summary), StartsWith("from another command\n### unflake"));
}

TEST_F(Summary, Says_what_had_no_room) {
  std::ofstream(path) << std::string(1000, 'x');
  GithubSummary summary(path, 4096);
  for (int i = 0; i < 100; ++i) fail_in(summary, "Case" + std::to_string(i), broken);
  const std::string text = end(summary);
  EXPECT_LE(text.size(), 4096u);
  EXPECT_THAT(text, HasSubstr("more tests left out: a summary may have 4 KiB."));
}

TEST_F(Summary, Hostile_names_do_not_break_the_table) {
  GithubSummary summary(path);
  fail_in(summary, "a|b\n<img> `@all`", broken);
  EXPECT_THAT(end(summary), HasSubstr("| `` suite:a\\|b\\n<img> `@all` `` |"));
}

TEST_F(Summary, A_file_that_cannot_be_written_is_told) {
  GithubSummary summary(folder.file("missing/summary.md"));
  summary.on(SessionEnded{});
  EXPECT_FALSE(summary.written());
}

}  // namespace
}  // namespace unflake
