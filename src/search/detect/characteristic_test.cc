#include "search/detect/characteristic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FunctionId call(const std::string& name) {
  return {FunctionKind::call, name};
}

const CharacteristicSet set = {{"async wait", FunctionKind::call, "nanosleep"},
                               {"async wait", FunctionKind::call, "*sleep*"},
                               {"time", FunctionKind::call, "nanosleep"},
                               {"concurrency", FunctionKind::call, "pthread_create"},
                               {"unordered collection", FunctionKind::library, "std::hash<*\\*>*"},
                               {"io", FunctionKind::project, "Files::*"}};

TEST(Exposures, Are_by_cause_with_the_functions_that_were_executed) {
  const std::vector executed{call("nanosleep"), call("usleep"), call("strlen")};
  EXPECT_THAT(exposures(set, executed), ElementsAre(Exposure{"async wait", {"nanosleep", "usleep"}},
                                                    Exposure{"time", {"nanosleep"}}));
  EXPECT_THAT(exposures(set, std::vector{call("strlen")}), IsEmpty());
  EXPECT_THAT(exposures({}, executed), IsEmpty());
}

TEST(Exposures, A_function_counts_for_its_own_kind_alone) {
  const std::vector<FunctionId> executed{{FunctionKind::project, "nanosleep", "a.cc"},
                                         {FunctionKind::project, "Files::open", "a.cc"},
                                         {FunctionKind::project, "Files::open", "b.cc"}};
  EXPECT_THAT(exposures(set, executed), ElementsAre(Exposure{"io", {"Files::open"}}));
}

TEST(Exposures, The_star_of_a_pointer_is_a_letter) {
  const auto of_library = [](const std::string& name) {
    return exposures(set, std::vector<FunctionId>{{FunctionKind::library, name}}).size();
  };
  EXPECT_EQ(of_library("std::hash<Node*>::operator()"), 1u);
  EXPECT_EQ(of_library("std::hash<int>::operator()"), 0u);
}

TEST(Exposures, Of_many_tests_are_those_of_each) {
  FunctionTraces traces;
  traces.functions = {call("nanosleep"), call("strlen"), call("pthread_create")};
  traces.tests = {
      {{"t", "a"}, {}, "", {0, 1}}, {{"t", "b"}, {}, "", {1}}, {{"t", "c"}, {}, "", {2}}};
  const auto all = exposures(set, traces);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].size(), 2u);
  EXPECT_THAT(all[1], IsEmpty());
  EXPECT_THAT(all[2], ElementsAre(Exposure{"concurrency", {"pthread_create"}}));
}

TEST(TracingPlan, Asks_for_what_the_set_names_of_libraries_and_records_no_calls) {
  const Plan plan = tracing_plan(set);
  EXPECT_TRUE(plan.agent && plan.functions && plan.callees);
  EXPECT_FALSE(plan.calls || plan.stacks);
  EXPECT_THAT(plan.library_functions, ElementsAre("std::hash<*\\*>*"));
}

std::vector<KnownTest> tests(int flaky, int sound, const std::vector<std::string>& causes) {
  KnownTest one;
  for (const std::string& cause : causes) one.exposed.push_back({cause, {"f"}});
  std::vector<KnownTest> all(static_cast<size_t>(flaky + sound), one);
  for (int i = 0; i < flaky; ++i) all[static_cast<size_t>(i)].is_flaky = true;
  return all;
}

std::vector<KnownTest> operator+(std::vector<KnownTest> left, const std::vector<KnownTest>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::vector<Exposure> none, waits{{"async wait", {"f"}}},
    random_too{{"async wait", {"f"}}, {"randomness", {"g"}}};

// 92.27 % of 543 flaky tests and 43.82 % of all 10,511: 501 and 4,606 tests.
TEST(ExposurePrior, Without_any_knowledge_is_what_was_published) {
  const ExposurePrior prior({});
  const double exposed = 0.9227 / ((4605.92 - 501.03) / 9968);
  EXPECT_NEAR(prior.of(waits).likelihood_ratio, exposed, 1e-3);
  EXPECT_NEAR(prior.of(waits).likelihood_ratio, 2.24, 0.01);
  EXPECT_NEAR(prior.of(none).likelihood_ratio, 0.0773 / (1 - 4104.89 / 9968), 1e-3);
  EXPECT_EQ(prior.of(none).cause, "");
}

TEST(ExposurePrior, Much_knowledge_outweighs_what_was_published) {
  const auto known = tests(90, 100, {"async wait"}) + tests(10, 900, {});
  const ExposurePrior prior(known);
  EXPECT_NEAR(prior.of(waits).likelihood_ratio, 0.9 / 0.1, 1.0);
  EXPECT_NEAR(prior.of(none).likelihood_ratio, 0.1 / 0.9, 0.01);
  EXPECT_EQ(prior.of(waits).flaky, 90);
  EXPECT_EQ(prior.of(waits).sound, 100);
}

// Here exposure says nothing, or the contrary: what holds elsewhere must not be believed.
TEST(ExposurePrior, Learns_that_a_project_is_different) {
  const auto known = tests(5, 950, {"async wait"}) + tests(45, 50, {});
  EXPECT_LT(ExposurePrior(known).of(waits).likelihood_ratio, 0.3);
  EXPECT_GT(ExposurePrior(known).of(none).likelihood_ratio, 5);
}

TEST(ExposurePrior, The_cause_that_tells_most_decides_and_nothing_counts_twice) {
  const auto known = tests(10, 200, {"async wait"}) + tests(40, 10, {"async wait", "randomness"}) +
                     tests(5, 700, {});
  const ExposurePrior prior(known);
  EXPECT_EQ(prior.of(random_too).cause, "randomness");
  EXPECT_EQ(prior.of(random_too).flaky, 40);
  EXPECT_EQ(prior.of(waits).flaky, 10);
  EXPECT_GT(prior.of(random_too).likelihood_ratio, prior.of(waits).likelihood_ratio);
  double of_flaky = 0, of_sound = 0;  // shares of the classes, weighted by themselves
  for (const auto* one : {&none, &waits, &random_too}) {
    of_flaky += static_cast<double>(prior.of(*one).flaky);
    of_sound += static_cast<double>(prior.of(*one).sound);
  }
  EXPECT_EQ(of_flaky, 55);
  EXPECT_EQ(of_sound, 910);
}

TEST(ExposurePrior, A_cause_that_was_never_seen_has_finite_weight) {
  const ExposurePrior prior(tests(20, 0, {}));
  const double ratio = prior.of(waits).likelihood_ratio;
  EXPECT_GT(ratio, 0);
  EXPECT_LT(ratio, 3);
}

TEST(ExposurePrior, Updates_chances) {
  EXPECT_NEAR(updated(0.05, 2.24), 0.1055, 1e-3);
  EXPECT_EQ(updated(0, 100), 0);
  EXPECT_EQ(updated(1, 0.01), 1);
  EXPECT_NEAR(updated(0.5, 1), 0.5, 1e-12);
}

TracedFunction own(const std::string& name, const std::string& file, std::vector<int> lines) {
  TracedFunction function;
  function.name = name;
  function.file = file;
  function.lines = std::move(lines);
  return function;
}

std::vector<std::string> names_of(const std::vector<TouchedFunction>& touched) {
  std::vector<std::string> names;
  for (const TouchedFunction& one : touched) names.push_back(one.function.name);
  return names;
}

TEST(TouchedFunctions, Have_an_edited_line_or_one_between_their_lines) {
  const EditedCode edited{{{"src/queue.cc", {12, 40}}}, {}};
  const std::vector executed{
      own("line", "queue.cc", {10, 12, 14}), own("between", "queue.cc", {38, 41}),
      own("before", "queue.cc", {1, 2, 11}), own("behind", "queue.cc", {42, 50}),
      own("elsewhere", "pool.cc", {12}),     own("other folder", "test/queue.cc", {12})};
  const auto touched = touched_functions(executed, edited);
  EXPECT_THAT(names_of(touched), ElementsAre("line", "between"));
  EXPECT_THAT(touched[0].lines, ElementsAre(12));
  EXPECT_EQ(touched[0].file, "src/queue.cc");
}

TEST(TouchedFunctions, What_lies_far_between_two_lines_is_another_function) {
  const EditedCode edited{{{"a.cc", {50}}}, {}};
  EXPECT_THAT(touched_functions(std::vector{own("f", "a.cc", {10, 100, 101})}, edited), IsEmpty());
}

TEST(TouchedFunctions, Without_lines_the_file_decides) {
  const EditedCode edited{{{"src/a.cc", {5}}}, {"src/new.cc"}};
  const std::vector<FunctionId> executed{{FunctionKind::project, "f", "a.cc"},
                                         {FunctionKind::project, "g", "b.cc"},
                                         {FunctionKind::project, "h", ""},
                                         {FunctionKind::call, "i", "a.cc"},
                                         {FunctionKind::project, "j", "src/new.cc"}};
  EXPECT_THAT(names_of(touched_functions(executed, edited)), ElementsAre("f", "j"));
}

TEST(TouchedFunctions, A_name_that_ends_alike_is_another_file) {
  const EditedCode edited{{{"src/aqueue.cc", {5}}}, {}};
  EXPECT_THAT(touched_functions(std::vector{own("f", "queue.cc", {5})}, edited), IsEmpty());
}

}  // namespace
}  // namespace unflake
