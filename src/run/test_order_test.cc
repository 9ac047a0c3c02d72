#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/local_executor.h"
#include "support/fixtures.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Kind = OutcomeKind;

// Real tests of real frameworks, several in one process.
class TestOrders : public testing::Test {
 protected:
  void list(const std::string& name, Framework framework) {
    for (unflake::Test& test : list_fixture(name, framework))
      listed_.push_back(std::make_shared<const unflake::Test>(std::move(test)));
  }

  Result<TestOrder> order(const std::vector<std::string>& names) const {
    Tests tests;
    for (const std::string& name : names)
      for (const auto& test : listed_)
        if (test->id.name == name) tests.push_back(test);
    EXPECT_EQ(tests.size(), names.size());
    return in_one_process(tests, listed_);
  }

  ExperimentResult run(const std::vector<std::string>& names, Duration timeout = 1min) {
    const auto tests = order(names);
    EXPECT_TRUE(tests) << to_string(tests.error());
    if (!tests) return {};
    auto result = executor_->run(Experiment{*tests, {}, timeout});
    EXPECT_TRUE(result);
    return result ? std::move(*result) : ExperimentResult{};
  }

  std::vector<Kind> kinds(const std::vector<std::string>& names, Duration timeout = 1min) {
    std::vector<Kind> all;
    for (const Outcome& outcome : run(names, timeout).outcomes) all.push_back(outcome.kind);
    return all;
  }

  std::string why_not(const std::vector<std::string>& names) const {
    const auto tests = order(names);
    return tests ? "" : tests.error().what;
  }

  Tests listed_;
  Interrupts interrupts_;
  std::unique_ptr<LocalExecutor> executor_ = std::move(*LocalExecutor::create({}, interrupts_));
};

TEST_F(TestOrders, A_single_test_is_run_as_ever) {
  list("gtest_cases", Framework::gtest);
  const ExperimentResult result = run({"Arithmetic.Adds"});
  EXPECT_EQ(result.outcome.kind, Kind::pass);
  EXPECT_THAT(result.outcomes, SizeIs(0));
}

TEST_F(TestOrders, GoogleTest_has_an_outcome_for_each) {
  list("gtest_cases", Framework::gtest);
  EXPECT_THAT(kinds({"Arithmetic.Adds", "Arithmetic.Expectation_fails", "Ending.Throws",
                     "Ending.Is_skipped", "Prefix.A"}),
              ElementsAre(Kind::pass, Kind::fail, Kind::fail, Kind::skipped, Kind::pass));
}

TEST_F(TestOrders, A_failure_is_the_same_as_when_its_test_is_run_alone) {
  for (const auto& [fixture, framework, names] :
       {std::tuple{"gtest_cases", Framework::gtest,
                   std::vector<std::string>{"Arithmetic.Adds", "Arithmetic.Expectation_fails"}},
        std::tuple{"catch2_cases", Framework::catch2,
                   std::vector<std::string>{"doubles", "checks fail"}},
        std::tuple{"doctest_cases", Framework::doctest,
                   std::vector<std::string>{"checks fail", "throws"}},
        std::tuple{"boost_cases", Framework::boost_test,
                   std::vector<std::string>{"numbers/doubles", "numbers/a_check_fails"}}}) {
    listed_.clear();
    list(fixture, framework);
    const ExperimentResult together = run(names), alone = run({names.back()});
    ASSERT_THAT(together.outcomes, SizeIs(2)) << fixture;
    EXPECT_EQ(together.outcome.kind, alone.outcome.kind) << fixture;
    EXPECT_EQ(together.outcome.signature, alone.outcome.signature) << fixture;
    EXPECT_EQ(together.outcome.failures, alone.outcome.failures) << fixture;
  }
}

TEST_F(TestOrders, Whoever_crashes_keeps_the_others_from_running) {
  for (const auto& [fixture, framework, names] :
       {std::tuple{"gtest_cases", Framework::gtest,
                   std::vector<std::string>{"Arithmetic.Adds", "Ending.Crashes", "Prefix.A"}},
        std::tuple{"catch2_cases", Framework::catch2,
                   std::vector<std::string>{"doubles", "crashes", "sections are one test"}},
        std::tuple{"boost_cases", Framework::boost_test,
                   std::vector<std::string>{"doubles", "numbers/inner/crashes", "data/_1"}}}) {
    listed_.clear();
    list(fixture, framework);
    EXPECT_THAT(kinds(names), ElementsAre(Kind::pass, Kind::crash, Kind::skipped)) << fixture;
  }
}

TEST_F(TestOrders, Whoever_hangs_is_the_one_that_ran_out_of_time) {
  list("gtest_cases", Framework::gtest);
  const ExperimentResult result = run({"Arithmetic.Adds", "Ending.Hangs", "Prefix.A"}, 300ms);
  ASSERT_THAT(result.outcomes, SizeIs(3));
  EXPECT_EQ(result.outcomes[0].kind, Kind::pass);
  EXPECT_EQ(result.outcomes[1].kind, Kind::timeout);
  EXPECT_THAT(result.outcomes[2].reason, HasSubstr("Ending.Hangs ended the process"));
}

TEST_F(TestOrders, Whoever_exits_is_the_one_that_did_not_end) {
  list("gtest_cases", Framework::gtest);
  EXPECT_THAT(kinds({"Arithmetic.Adds", "Ending.Exits_early", "Prefix.A"}),
              ElementsAre(Kind::pass, Kind::fail, Kind::skipped));
  listed_.clear();
  list("catch2_exits", Framework::catch2);
  EXPECT_THAT(kinds({"stays", "calls exit"}), ElementsAre(Kind::pass, Kind::fail));
}

TEST_F(TestOrders, GoogleTest_runs_them_in_another_order_than_it_lists_them) {
  list("gtest_cases", Framework::gtest);
  for (const auto& names : {std::vector<std::string>{"Prefix.A", "Arithmetic.Adds"},
                            std::vector<std::string>{"Prefix.AB", "Prefix.A"},
                            std::vector<std::string>{"Ending.Is_skipped", "Prefix.AB", "Prefix.A",
                                                     "Arithmetic.Adds"}}) {
    const std::string output = run(names).process.output.text();
    size_t last = 0;
    for (const std::string& name : names) {
      const size_t at = output.find("[ RUN      ] " + name + "\n");
      ASSERT_NE(at, output.npos) << name;
      EXPECT_GE(at, last) << name;
      last = at;
    }
  }
}

TEST_F(TestOrders, GoogleTest_does_not_run_a_suite_inside_of_another) {
  list("gtest_cases", Framework::gtest);
  EXPECT_THAT(why_not({"Prefix.A", "Arithmetic.Adds", "Prefix.AB"}),
              HasSubstr("all tests of a suite one after another"));
}

TEST_F(TestOrders, Catch2_runs_them_as_declared_or_by_name) {
  list("catch2_cases", Framework::catch2);
  EXPECT_THAT(kinds({"doubles", "a requirement fails", "sections are one test", "hidden"}),
              ElementsAre(Kind::pass, Kind::fail, Kind::pass, Kind::pass));
  EXPECT_THAT(kinds({"checks fail", "doubles"}), ElementsAre(Kind::fail, Kind::pass));
  EXPECT_THAT(why_not({"throws", "doubles"}), HasSubstr("declaration or of their names"));
}

TEST_F(TestOrders, Doctest_runs_them_by_file_or_by_name) {
  list("doctest_cases", Framework::doctest);
  EXPECT_THAT(kinds({"a requirement fails", "throws", "subcases are one test", "should fail",
                     "should fail and does not", "may fail"}),
              ElementsAre(Kind::fail, Kind::fail, Kind::pass, Kind::pass, Kind::fail, Kind::pass));
  EXPECT_THAT(kinds({"crashes", "may fail"}), ElementsAre(Kind::crash, Kind::skipped));
  EXPECT_THAT(why_not({"whats", "throws", "crashes"}), HasSubstr("files or of their names"));
  EXPECT_THAT(why_not({"twin", "whats"}), HasSubstr("does not select it alone"));
}

TEST_F(TestOrders, Boost_Test_keeps_its_own_order_only) {
  list("boost_cases", Framework::boost_test);
  EXPECT_THAT(kinds({"numbers/doubles", "numbers/a_check_fails", "expected_to_fail", "data/_3"}),
              ElementsAre(Kind::pass, Kind::fail, Kind::pass, Kind::pass));
  EXPECT_THAT(why_not({"data/_3", "numbers/doubles"}), HasSubstr("order of its listing"));
}

using Names = std::vector<std::string>;

// A run in an arrangement, and in which order the tests were seen.
TEST_F(TestOrders, A_seed_gives_an_order_that_a_selection_keeps) {
  for (const auto& [fixture, framework, order_is_known] :
       {std::tuple{"order_gtest", Framework::gtest, true},
        std::tuple{"order_catch2", Framework::catch2, false},
        std::tuple{"order_doctest", Framework::doctest, false}}) {
    listed_.clear();
    list(fixture, framework);
    ASSERT_THAT(listed_, SizeIs(200)) << fixture;
    const auto run_of = [&](const Tests& tests) {
      const auto order = arranged_in_one_process(tests, listed_, {Arrangement::Kind::shuffled, 5});
      EXPECT_TRUE(order) << to_string(order.error());
      EXPECT_NE(order->is_open, order_is_known) << fixture;
      const auto result = executor_->run(Experiment{*order, {}, 1min});
      std::vector<std::string> names;
      for (const size_t number : result->sequence) names.push_back(order->all[number]->id.name);
      return names;
    };
    const std::vector<std::string> all = run_of(listed_);
    EXPECT_THAT(all, SizeIs(200)) << fixture;
    EXPECT_NE(all.front(), listed_.front()->id.name);
    Tests some(listed_.begin() + 20, listed_.begin() + 26);
    std::vector<std::string> wanted;
    for (const std::string& name : all)
      for (const auto& test : some)
        if (test->id.name == name) wanted.push_back(name);
    EXPECT_EQ(run_of(some), wanted) << fixture;
  }
}

TEST_F(TestOrders, The_order_that_Boost_Test_draws_is_known_before) {
  for (const auto& [fixture, wanted] :
       {std::pair{"order_boost", Names{}}, std::pair{"boost_suites", Names{}},
        std::pair{"boost_suites", Names{"a", "outer/c", "outer/inner/e", "outer/g", "h"}}}) {
    listed_.clear();
    list(fixture, Framework::boost_test);
    Tests some;
    for (const auto& test : listed_)
      if (wanted.empty() || std::ranges::find(wanted, test->id.name) != wanted.end())
        some.push_back(test);
    for (const uint32_t seed : {1u, 2u, 7u, 42u}) {
      const auto order =
          arranged_in_one_process(some, listed_, {Arrangement::Kind::shuffled, seed});
      ASSERT_TRUE(order) << to_string(order.error());
      EXPECT_TRUE(order->is_expected);
      const auto result = executor_->run(Experiment{*order, {}, 1min});
      EXPECT_TRUE(std::ranges::is_sorted(result->sequence)) << fixture << " " << seed;
      EXPECT_THAT(result->sequence, SizeIs(some.size()));
    }
  }
}

TEST_F(TestOrders, Processes_run_one_after_the_other_with_an_end_for_each) {
  const auto command = [](const char* name, const char* script) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"commands", name};
    test->command.argv = {"/bin/sh", "-c", script};
    test->command.env = {{"WORD", name}};
    return test;
  };
  const Tests tests{command("says", "printf \"$WORD\"; exit 0"),
                    command("fails", "echo no; exit 3"), command("dies", "kill -SEGV $$"),
                    command("ends", "exit 0")};
  const auto order = in_sequence(tests);
  ASSERT_TRUE(order);
  const auto result = executor_->run(Experiment{*order, {}, 1min});
  ASSERT_TRUE(result);
  ASSERT_THAT(result->outcomes, SizeIs(4));
  EXPECT_EQ(result->outcomes[0].kind, Kind::pass);
  EXPECT_EQ(result->outcomes[1].kind, Kind::fail);
  EXPECT_EQ(result->outcomes[2].kind, Kind::crash);
  EXPECT_EQ(result->outcomes[3].kind, Kind::pass);
  EXPECT_THAT(result->sequence, ElementsAre(0, 1, 2, 3));
}

TEST_F(TestOrders, Commands_and_tests_of_two_programs_do_not_share_a_process) {
  list("gtest_cases", Framework::gtest);
  list("catch2_cases", Framework::catch2);
  EXPECT_THAT(why_not({"Arithmetic.Adds", "doubles"}), HasSubstr("another program"));
  const auto command = [](const char* name) {
    auto test = std::make_shared<unflake::Test>();
    test->id = {"commands", name};
    return test;
  };
  const Tests both{command("a"), command("b")};
  const auto refused = in_one_process(both, both);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("a command of its own"));
}

TEST_F(TestOrders, No_test_is_run_twice) {
  list("gtest_cases", Framework::gtest);
  EXPECT_THAT(why_not({"Arithmetic.Adds", "Arithmetic.Adds"}), HasSubstr("twice"));
}

}  // namespace
}  // namespace unflake
