#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/values.h"
#include "support/store_fixture.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

FunctionId own(const std::string& name, const std::string& file = "a.cc") {
  return {FunctionKind::project, name, file};
}
FunctionId call(const std::string& name) {
  return {FunctionKind::call, name};
}

FunctionsRecord trace(const std::string& test, int64_t second, std::vector<FunctionId> functions) {
  return {{"suite", test}, at_second(second), std::move(functions)};
}

class StoreFunctionsTest : public StoreFixture {
 protected:
  void keep(SessionId session, const std::vector<FunctionsRecord>& traces) {
    const auto kept = store_->record_functions(session, traces);
    ASSERT_TRUE(kept) << to_string(kept.error());
  }

  // "t@c1: call sleep, project f a.cc" for each test.
  std::vector<std::string> latest(const std::string& pattern = "*") {
    const auto found = store_->latest_functions(pattern);
    EXPECT_TRUE(found) << to_string(found.error());
    std::vector<std::string> lines;
    if (!found) return lines;
    for (const FunctionTraces::OfTest& test : found->tests) {
      std::vector<std::string> names;
      for (const uint32_t number : test.functions) {
        const FunctionId& one = found->functions.at(number);
        names.push_back(fmt::format("{} {}{}{}", to_string(one.kind), one.name,
                                    one.file.empty() ? "" : " ", one.file));
      }
      std::ranges::sort(names);
      lines.push_back(
          fmt::format("{}@{}: {}", test.test.name, test.commit, fmt::join(names, ", ")));
    }
    return lines;
  }

  RetentionCount forget_older_than(Duration age, int64_t now) {
    Retention retention;
    retention.trials = age;
    const auto forgotten = store_->forget(retention, at_second(now));
    EXPECT_TRUE(forgotten) << to_string(forgotten.error());
    return forgotten ? *forgotten : RetentionCount{};
  }
};

UNFLAKE_ON_EVERY_BACKEND(StoreFunctionsTest);

TEST_P(StoreFunctionsTest, Come_back_with_their_commit_by_the_names_of_tests) {
  keep(begin("c1"), {trace("b", 1, {own("f"), call("sleep")}), trace("a", 2, {call("sleep")})});
  EXPECT_THAT(latest(), ElementsAre("a@c1: call sleep", "b@c1: call sleep, project f a.cc"));
  EXPECT_THAT(latest("*:b"), SizeIs(1));
  EXPECT_THAT(latest("no such test"), IsEmpty());
}

TEST_P(StoreFunctionsTest, The_newest_trace_of_a_test_counts_whenever_it_was_recorded) {
  const SessionId now = begin("new"), before = begin("old");
  keep(now, {trace("t", 20, {own("g")})});
  keep(before, {trace("t", 10, {own("f")})});
  EXPECT_THAT(latest(), ElementsAre("t@new: project g a.cc"));
}

TEST_P(StoreFunctionsTest, The_same_trace_again_changes_nothing) {
  const SessionId session = begin("c1");
  for (int i = 0; i < 3; ++i) keep(session, {trace("t", 1, {own("f"), own("g")})});
  keep(session, {trace("t", 1, {own("h")})});
  EXPECT_THAT(latest(), ElementsAre("t@c1: project f a.cc, project g a.cc"));
}

TEST_P(StoreFunctionsTest, Functions_of_one_name_in_two_files_are_two) {
  keep(begin("c1"), {trace("t", 1, {own("f", "a.cc"), own("f", "b.cc"), call("f")})});
  EXPECT_THAT(latest(), ElementsAre("t@c1: call f, project f a.cc, project f b.cc"));
}

TEST_P(StoreFunctionsTest, A_test_that_executed_nothing_is_there_all_the_same) {
  keep(begin("c1"), {trace("t", 1, {})});
  EXPECT_THAT(latest(), ElementsAre("t@c1: "));
}

TEST_P(StoreFunctionsTest, Names_may_be_any_bytes_of_any_length) {
  const std::string odd("a\0b\xff\x1b[2J'\"\n", 11), old(10'000, 'x');
  keep(begin("c1"), {trace(odd, 1, {own(odd, odd), own(old), call("")})});
  const auto found = store_->latest_functions("*");
  ASSERT_TRUE(found) << to_string(found.error());
  ASSERT_THAT(found->tests, SizeIs(1));
  EXPECT_EQ(found->tests[0].test.name, odd);
  ASSERT_THAT(found->tests[0].functions, SizeIs(3));
  for (const FunctionId& function : found->functions)
    EXPECT_LE(function.name.size(), longest_function_name);
  EXPECT_THAT(found->functions, testing::Contains(own(odd, odd)));
}

TEST_P(StoreFunctionsTest, Projects_do_not_see_each_others) {
  keep(begin("c1"), {trace("t", 1, {own("f")})});
  const auto other = open_project("other");
  const auto session = other->begin_session(session_of_commit("c2"));
  ASSERT_TRUE(session);
  const std::vector theirs{trace("t", 2, {own("f"), own("g")})};
  ASSERT_TRUE(other->record_functions(*session, theirs));
  EXPECT_THAT(latest(), ElementsAre("t@c1: project f a.cc"));
}

TEST_P(StoreFunctionsTest, A_session_that_is_not_there_takes_none) {
  const std::vector one{trace("t", 1, {own("f")})};
  EXPECT_FALSE(store_->record_functions(4711, one));
  EXPECT_THAT(latest(), IsEmpty());
}

TEST_P(StoreFunctionsTest, Old_traces_go_but_for_the_newest_of_each_test) {
  const SessionId session = begin("c1");
  keep(session, {trace("t", 1, {own("f"), own("gone")}), trace("t", 2, {own("f")}),
                 trace("u", 1, {own("g")})});
  EXPECT_EQ(forget_older_than(10s, 100).traces, 1);
  EXPECT_THAT(latest(), ElementsAre("t@c1: project f a.cc", "u@c1: project g a.cc"));
  EXPECT_EQ(forget_older_than(10s, 100).traces, 0);
  keep(session, {trace("u", 200, {own("gone")})});
  EXPECT_THAT(latest("*:u"), ElementsAre("u@c1: project gone a.cc"));
}

TEST(FunctionSets, Are_packed_into_few_bytes_and_come_back) {
  std::vector<int64_t> rows;
  for (int64_t row = 1'000'000; rows.size() < 1000; row += 1 + row % 3) rows.push_back(row);
  const std::string packed = packed_rows(rows);
  EXPECT_LE(packed.size(), 1010u);
  EXPECT_EQ(unpacked_rows(packed), rows);
  EXPECT_THAT(unpacked_rows(packed_rows(std::vector<int64_t>{1, INT64_MAX})),
              ElementsAre(1, INT64_MAX));
  EXPECT_THAT(unpacked_rows(""), IsEmpty());
}

TEST(FunctionSets, Reading_stops_at_what_was_never_written_so) {
  EXPECT_THAT(unpacked_rows(std::string("\x05\x00\x05", 3)), ElementsAre(5));
  EXPECT_THAT(unpacked_rows(std::string(20, '\xff')), IsEmpty());
  EXPECT_THAT(unpacked_rows("\x07\x80"), ElementsAre(7));
}

}  // namespace
}  // namespace unflake
