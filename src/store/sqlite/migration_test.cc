#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/store.h"
#include "support/first_history.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

class MigrationTest : public testing::Test {
 protected:
  void make_first_version() const { make_first_history(path_); }
  void sql(const std::string& statements) const { run_sql(path_, statements); }

  TempFolder folder_;
  std::string path_ = folder_.file("history.db");
};

TEST_F(MigrationTest, Keeps_all_that_the_first_version_recorded) {
  make_first_version();
  const auto store = open_store({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  const TestSummary test = **(*store)->summarise_test({"suite", "t"});
  EXPECT_EQ(test.passes, 3);
  EXPECT_EQ(test.failures, 1) << "without the plan's";
  EXPECT_EQ(test.fail_durations.mean, std::chrono::milliseconds(10));
  EXPECT_EQ((*store)->recent_runs({"suite", "t"}, 10)->size(), 4u);
  const auto trials = *(*store)->recent_trials({"suite", "t"}, "", 10);
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].plan, "plan");
  EXPECT_EQ(trials[0].signature, "aa");
  EXPECT_EQ(trials[0].duration, std::chrono::milliseconds(80));
  EXPECT_EQ(**(*store)->latest_output({"suite", "t"}, "aa"), "ABC");
  const auto target = *(*store)->find_target("suite");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->argv, std::vector<std::string>{"--a"});
}

TEST_F(MigrationTest, Finds_the_flaky_failures_of_the_first_version) {
  make_first_version();
  const auto store = open_store({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto failures = *(*store)->lifecycle().flaky_failures({}, 10);
  ASSERT_EQ(failures.size(), 1u) << "u passed in a changed work tree only";
  EXPECT_EQ(failures[0].test.name, "t");
  EXPECT_EQ(failures[0].runs, 1);
  EXPECT_EQ(failures[0].wasted, std::chrono::milliseconds(30));
  const auto rows = *(*store)->lifecycle().prevalence({});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].builds, 3);
  EXPECT_EQ(rows[0].runs, 5) << "without the plan's and the fresh one";
  EXPECT_EQ(rows[0].tests, 2);
}

TEST_F(MigrationTest, Knows_again_what_the_first_version_recorded) {
  make_first_version();
  const auto store = open_store({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  SessionRecord session = session_of_commit("c1");
  session.uuid = "first";
  const auto id = (*store)->begin_session(session);
  ASSERT_TRUE(id);
  EXPECT_EQ(*id, 3);
  RunRecord run = failing_run("t", 1, "aa");
  ASSERT_TRUE((*store)->record_all(*id, {&run, 1}));
  ASSERT_TRUE((*store)->record(*id, run));
  ASSERT_TRUE((*store)->end_session(*id));
  EXPECT_EQ((**(*store)->summarise_test({"suite", "t"})).failures, 1);
  EXPECT_EQ((*(*store)->lifecycle().flaky_failures({}, 10))[0].runs, 1);
}

TEST_F(MigrationTest, Leaves_a_reader_of_an_old_history_with_what_to_do) {
  make_first_version();
  const auto store = open_store_to_read({path_});
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().what, HasSubstr("version 1"));
  EXPECT_THAT(store.error().next, HasSubstr("brings it up to date"));
}

TEST_F(MigrationTest, Leaves_the_first_version_whole_when_it_cannot_be_finished) {
  make_first_version();
  sql("CREATE TABLE horizons (x)");  // in the way of what comes late in the script
  ASSERT_FALSE(open_store({path_}));
  sql("DROP TABLE horizons");
  const auto store = open_store({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  EXPECT_EQ((**(*store)->summarise_test({"suite", "t"})).passes, 3);
}

}  // namespace
}  // namespace unflake
