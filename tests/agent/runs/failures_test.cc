#include "agent_runs.h"

namespace unflake {
namespace {

struct Way {
  const char* how;
  const char* where;
  const char* kind;
  int signal;
};

class AgentFailureStacks : public testing::TestWithParam<Way> {};

TEST_P(AgentFailureStacks, The_stack_begins_where_it_failed) {
  const Way& way = GetParam();
  const ExperimentResult result =
      AgentRuns({"failing", way.how, way.where}).run(AgentRuns::watching());
  ASSERT_EQ(result.trace->failures.size(), 1u);
  const TracedFailure& failure = result.trace->failures[0];
  EXPECT_EQ(failure.kind, way.kind);
  EXPECT_EQ(failure.signal, way.signal);
  std::vector<std::string> functions;
  for (const TracedFrame& frame : failure.stack.frames)
    for (const Frame& source : frame.source)
      if (source.function == "fail" || source.function == "prepare")
        functions.push_back(source.function);
  EXPECT_EQ(functions, (std::vector<std::string>{"fail", "prepare"}));
}

INSTANTIATE_TEST_SUITE_P(
    , AgentFailureStacks,
    testing::Values(Way{"assert", "main", "assert", 0}, Way{"assert", "thread", "assert", 0},
                    Way{"abort", "main", "abort", 0}, Way{"abort", "thread", "abort", 0},
                    Way{"throw", "main", "exception", 0}, Way{"throw", "thread", "exception", 0},
                    Way{"segv", "main", "signal", SIGSEGV},
                    Way{"segv", "thread", "signal", SIGSEGV},
                    Way{"segv", "handled", "signal", SIGSEGV},
                    Way{"sent_fault", "main", "signal", SIGSEGV},
                    Way{"raise", "main", "signal", SIGFPE}),
    [](const auto& info) { return std::string(info.param.how) + "_" + info.param.where; });

TEST(AgentFailures, The_process_ends_as_it_would_without_the_agent) {
  const auto end_of = [](const char* how, const char* where) {
    return AgentRuns({"failing", how, where}).run(AgentRuns::watching()).process;
  };
  EXPECT_EQ(end_of("segv", "main").code, SIGSEGV);
  EXPECT_EQ(end_of("sent_fault", "main").code, SIGSEGV);
  EXPECT_EQ(end_of("raise", "main").code, SIGFPE);
  EXPECT_EQ(end_of("assert", "main").code, SIGABRT);
  const ProcessResult handled = end_of("segv", "handled");
  EXPECT_EQ(handled.end, ProcessResult::End::exited);
  EXPECT_EQ(handled.code, 5);
}

TEST(AgentFailures, An_assertion_brings_its_text_and_line) {
  const ExperimentResult result = AgentRuns({"failing", "assert"}).run(AgentRuns::watching());
  ASSERT_EQ(result.trace->failures.size(), 1u);
  EXPECT_EQ(result.trace->failures[0].message, "how.empty()");
  EXPECT_TRUE(result.trace->failures[0].file.ends_with("failing.cc"));
}

TEST(AgentFailures, An_exception_brings_its_type) {
  const ExperimentResult result = AgentRuns({"failing", "throw"}).run(AgentRuns::watching());
  ASSERT_EQ(result.trace->failures.size(), 1u);
  EXPECT_EQ(result.trace->failures[0].exception_type, "std::runtime_error");
}

struct FrameworkCase {
  const char* program;
  std::vector<std::string> arguments;
  const char* source;
};

class AgentFrameworks : public testing::TestWithParam<FrameworkCase> {};

TEST_P(AgentFrameworks, The_stack_of_a_failed_check_leads_into_the_test) {
  const FrameworkCase& one = GetParam();
  std::vector<std::string> argv{std::string(UNFLAKE_TEST_SUITES) + "/" + one.program};
  argv.insert(argv.end(), one.arguments.begin(), one.arguments.end());
  const ExperimentResult result = AgentRuns(argv).run(AgentRuns::watching());
  ASSERT_FALSE(result.trace->failures.empty());
  const TracedFailure& failure = result.trace->failures[0];
  EXPECT_EQ(failure.kind, "assertion");
  EXPECT_TRUE(failure.file.ends_with(one.source)) << failure.file;
  EXPECT_GT(failure.line, 0);
}

INSTANTIATE_TEST_SUITE_P(
    , AgentFrameworks,
    testing::Values(
        FrameworkCase{
            "gtest_cases", {"--gtest_filter=Arithmetic.Assertion_fails"}, "gtest_cases.cc"},
        FrameworkCase{"catch2_cases", {"checks fail"}, "catch2_cases.cc"},
        FrameworkCase{"doctest_cases", {"--test-case=checks fail"}, "doctest_cases.cc"},
        FrameworkCase{"boost_cases", {"--run_test=numbers/a_check_fails"}, "boost_cases.cc"}),
    [](const auto& info) { return std::string(info.param.program); });

class AgentPassingChecks : public testing::TestWithParam<FrameworkCase> {};

TEST_P(AgentPassingChecks, A_check_that_holds_is_no_failure) {
  const FrameworkCase& one = GetParam();
  std::vector<std::string> argv{std::string(UNFLAKE_TEST_SUITES) + "/" + one.program};
  argv.insert(argv.end(), one.arguments.begin(), one.arguments.end());
  const ExperimentResult result = AgentRuns(argv).run(AgentRuns::watching());
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_TRUE(result.trace->failures.empty());
}

INSTANTIATE_TEST_SUITE_P(
    , AgentPassingChecks,
    testing::Values(FrameworkCase{"gtest_cases", {"--gtest_filter=Arithmetic.Adds"}, ""},
                    FrameworkCase{"catch2_cases", {"doubles"}, ""},
                    FrameworkCase{"doctest_cases", {"--test-case=doubles"}, ""},
                    FrameworkCase{"boost_cases", {"--run_test=numbers/doubles"}, ""}),
    [](const auto& info) { return std::string(info.param.program); });

}  // namespace
}  // namespace unflake
