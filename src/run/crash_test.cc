#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include "protocol/preload_protocol.h"
#include "run/local_executor.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class Crash : public testing::Test {
 protected:
  ExperimentResult run(const std::string& way, const Plan& plan = {}, bool fork_server = false,
                       const char* program = UNFLAKE_FIXTURES "/crashes") {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"crashes", way};
    test->command.argv = {program, way};
    Experiment experiment{test, plan, 60s};
    experiment.fork_server = fork_server;
    auto result = executor_->run(experiment);
    EXPECT_TRUE(result);
    return result ? std::move(*result) : ExperimentResult();
  }

  static Failure failure_of(const ExperimentResult& result) {
    EXPECT_EQ(result.outcome.kind, OutcomeKind::crash);
    return result.outcome.failures.empty() ? Failure() : result.outcome.failures.front();
  }

  static std::vector<std::string> functions_of(const ExperimentResult& result) {
    std::vector<std::string> functions;
    if (result.process.thread_stacks.empty()) return functions;
    for (const auto& frame : result.process.thread_stacks.front().frames)
      functions.push_back(frame.function);
    return functions;
  }

  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_ = std::move(*LocalExecutor::create({}, interrupts_));
};

struct CrashWay {
  const char* name;
  int signal;
  const char* function;
};

std::string with_underscores(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

class CrashPlace : public Crash, public testing::WithParamInterface<CrashWay> {};

TEST_P(CrashPlace, Is_named_in_a_plain_run) {
  const ExperimentResult result = run(GetParam().name);
  EXPECT_EQ(result.process.end, ProcessResult::End::signalled);
  EXPECT_EQ(result.process.code, GetParam().signal);
  const Failure failure = failure_of(result);
  EXPECT_EQ(failure.kind, FailureKind::signal);
  EXPECT_THAT(failure.function, HasSubstr(GetParam().function));
  EXPECT_THAT(failure.file, HasSubstr("crashes.cc"));
  EXPECT_EQ(failure.line == 0, std::string(GetParam().name) == "overflow");
}

TEST_P(CrashPlace, Is_the_same_under_the_agent) {
  Plan plan;
  plan.agent = true;
  EXPECT_EQ(run(GetParam().name, plan).outcome.signature, run(GetParam().name).outcome.signature);
}

TEST_P(CrashPlace, Is_the_same_from_a_fork_server) {
  const ExperimentResult forked = run(GetParam().name, {}, true);
  EXPECT_EQ(forked.outcome.signature, run(GetParam().name).outcome.signature);
}

INSTANTIATE_TEST_SUITE_P(, CrashPlace,
                         testing::Values(CrashWay{"null", SIGSEGV, "write_to_nowhere"},
                                         CrashWay{"division", SIGFPE, "divide_by"},
                                         CrashWay{"abort", SIGABRT, "give_up"},
                                         CrashWay{"overflow", SIGSEGV, "recurse_for_ever"},
                                         CrashWay{"raised again", SIGSEGV, "write_to_nowhere"},
                                         CrashWay{"thread", SIGSEGV, "write_to_nowhere"}),
                         [](const auto& way) { return with_underscores(way.param.name); });

TEST_F(Crash, Two_places_of_one_test_are_two_failures) {
  EXPECT_NE(run("null").outcome.signature, run("other null").outcome.signature);
  EXPECT_EQ(run("null").outcome.signature, run("null").outcome.signature);
}

TEST_F(Crash, The_stack_begins_where_it_crashed) {
  const auto functions = functions_of(run("null"));
  ASSERT_GE(functions.size(), 2u);
  EXPECT_THAT(functions[0], HasSubstr("write_to_nowhere"));
  EXPECT_EQ(functions[1], "main");
}

TEST_F(Crash, An_endless_recursion_is_called_a_stack_overflow) {
  EXPECT_THAT(headline(failure_of(run("overflow"))),
              testing::MatchesRegex("SIGSEGV .stack overflow. in .*recurse_for_ever"));
}

TEST_F(Crash, A_breakpoint_without_a_debugger_is_one) {
  const ExperimentResult result = run("trap");
  EXPECT_EQ(result.process.code, SIGTRAP);
  EXPECT_THAT(failure_of(result).function, HasSubstr("trap"));
}

TEST_F(Crash, A_constructor_may_crash_too) {
  EXPECT_THAT(failure_of(run("before main")).function, HasSubstr("write_to_nowhere"));
}

TEST_F(Crash, A_child_that_dies_is_the_business_of_the_test) {
  const ExperimentResult result = run("child");
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_EQ(result.process.output.head, "child died of 11\n");
}

// The kernel keeps threads that are traced when their process dies; none may remain.
TEST_F(Crash, Of_many_threads_ends_the_process_every_time) {
  for (int i = 0; i < 30; ++i) {
    const ExperimentResult result = run("idle threads");
    ASSERT_EQ(result.process.end, ProcessResult::End::signalled);
    EXPECT_THAT(failure_of(result).function, HasSubstr("write_to_nowhere"));
  }
}

TEST_F(Crash, Of_a_daemon_is_not_waited_for) {
  const ExperimentResult result = run("daemon");
  EXPECT_EQ(result.outcome.kind, OutcomeKind::pass);
  EXPECT_LT(result.process.duration,
            std::chrono::milliseconds(protocol::crash_milliseconds_to_answer));
}

TEST_F(Crash, Is_not_interrupted_by_a_watchdog) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(run("watchdog").process.end, ProcessResult::End::signalled);
}

TEST_F(Crash, Needs_no_more_stack_than_the_program_has) {
  EXPECT_EQ(run("small stack").process.code, SIGABRT);
}

TEST_F(Crash, The_test_sees_nothing_of_it_in_its_environment) {
  const std::string shown = run("environment").process.output.head;
  EXPECT_THAT(shown, Not(HasSubstr("UNFLAKE_CRASH")));
  EXPECT_THAT(shown, Not(HasSubstr("LD_PRELOAD")));
}

TEST_F(Crash, What_the_user_preloads_stays) {
  auto test = std::make_shared<unflake::Test>();
  test->command.argv = {UNFLAKE_FIXTURES "/crashes", "environment"};
  test->command.env = {{"LD_PRELOAD", "libm.so.6"}};
  const auto result = executor_->run({test, {}, 60s});
  ASSERT_TRUE(result);
  EXPECT_THAT(result->process.output.head, HasSubstr("LD_PRELOAD=libm.so.6\n"));
}

// Its run-time wants to be the first library, and reports crashes itself.
TEST_F(Crash, A_sanitizer_is_left_to_itself) {
  const ExperimentResult result = run("null", {}, false, UNFLAKE_FIXTURES "/crashes_with_asan");
  ASSERT_FALSE(result.outcome.failures.empty());
  EXPECT_EQ(result.outcome.failures.front().kind, FailureKind::address_sanitizer);
}

TEST_F(Crash, Without_it_a_crash_has_no_place) {
  LocalOptions options;
  options.crash_places = false;
  executor_ = std::move(*LocalExecutor::create(options, interrupts_));
  const Failure failure = failure_of(run("null"));
  EXPECT_TRUE(is_without_place(failure));
  EXPECT_EQ(failure.message, "SIGSEGV");
}

}  // namespace
}  // namespace unflake
