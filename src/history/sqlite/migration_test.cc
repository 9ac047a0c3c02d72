#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "history/migrations.h"
#include "history/store.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::HasSubstr;

// A history as the first version of the schema left it: folded runs, fresh ones, and their sums.
constexpr const char* first_version_data = R"sql(
    INSERT INTO tests VALUES (7, 'suite', 't'), (9, 'suite', 'u');
    INSERT INTO targets VALUES ('suite', 'gtest', 'build/suite', x'2d2d6100');
    INSERT INTO sessions VALUES
      (3, 'first', 1700000000000000, NULL, 'c1', 'main', 0, 'm', '0.1', 'unflake run', NULL),
      (4, 'second', 1700000100000000, 1, 'c1', 'main', 0, 'm', '0.1', 'unflake run', 5),
      (5, 'third', 1700000200000000, 1, 'c1', 'main', 1, 'm', '0.1', 'unflake run', 5);
    INSERT INTO signatures VALUES (2, 'aa', 1, 'a.cc', 1, 'f', 'a == b', 'no');
    INSERT INTO plans VALUES (6, 'plan');
    INSERT INTO runs VALUES
      (7, 1700000001000000, 3, 1, 10000, 1, 2, 0),
      (7, 1700000002000000, 3, 2, 20000, 0, 0, 0),
      (7, 1700000003000000, 3, 3, 40000, 0, 0, 0),
      (7, 1700000004000000, 3, 4, 80000, 1, 2, 6),
      (9, 1700000101000000, 4, 1, 10000, 1, 2, 0),
      (9, 1700000201000000, 5, 1, 10000, 0, 0, 0);
    INSERT INTO totals VALUES
      (7, 0, 0, 2, 60000, 20000, 40000, 1700000002000000, 3, 1700000003000000, 3),
      (7, 1, 2, 2, 90000, 10000, 80000, 1700000001000000, 3, 1700000004000000, 3),
      (9, 1, 2, 1, 10000, 10000, 10000, 1700000101000000, 4, 1700000101000000, 4),
      (9, 0, 0, 1, 10000, 10000, 10000, 1700000201000000, 5, 1700000201000000, 5);
    INSERT INTO fresh_runs VALUES (7, 1700000102000000, 4, 1, 10000, 0, 0, 0);
    INSERT INTO outputs VALUES (7, 2, 0, 1700000001000000, x'414243');
)sql";

class MigrationTest : public testing::Test {
 protected:
  void sql(const std::string& statements) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  void make_first_version() const {
    sql("PRAGMA journal_mode = WAL");
    sql("BEGIN;" + migration(1, Dialect::sqlite) + first_version_data +
        "PRAGMA application_id = 0x756e666b; PRAGMA user_version = 1; COMMIT");
  }

  TempFolder folder_;
  std::string path_ = folder_.file("history.db");
};

TEST_F(MigrationTest, Keeps_all_that_the_first_version_recorded) {
  make_first_version();
  const auto store = open_store({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  const TestSummary test = **(*store)->summarise_test({"suite", "t"});
  EXPECT_EQ(test.passes, 3);
  EXPECT_EQ(test.failures, 2);
  EXPECT_EQ((*store)->recent_runs({"suite", "t"}, 10)->size(), 5u);
  EXPECT_EQ(**(*store)->latest_output({"suite", "t"}, "aa"), "ABC");
  const auto target = *(*store)->find_target("suite");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->argv, std::vector<std::string>{"--a"});
}

TEST_F(MigrationTest, Finds_the_flaky_failures_of_the_first_version) {
  make_first_version();
  const auto store = open_store({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto failures = *(*store)->flaky_failures({}, 10);
  ASSERT_EQ(failures.size(), 1u) << "u passed in a changed work tree only";
  EXPECT_EQ(failures[0].test.name, "t");
  EXPECT_EQ(failures[0].runs, 1);
  EXPECT_EQ(failures[0].wasted, std::chrono::milliseconds(30));
  const auto rows = *(*store)->prevalence({});
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
  EXPECT_EQ((**(*store)->summarise_test({"suite", "t"})).failures, 2);
  EXPECT_EQ((*(*store)->flaky_failures({}, 10))[0].runs, 1);
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
