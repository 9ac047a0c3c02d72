#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "store/store.h"
#include "support/store_fixture.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct FileOfHistory {
  TempFolder folder_;
  std::string path_ = folder_.file("deep/er/history.db");
};

class SqliteStoreTest : public testing::Test, protected FileOfHistory, protected StoreWords {
 protected:
  SqliteStoreTest() : StoreWords(path_) {}

  // What no unflake would write: for readers that must survive it.
  void tamper(const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
};

TEST_F(SqliteStoreTest, Keeps_the_output_of_the_newest_failures_only) {
  const SessionId session = begin();
  for (int second = 0; second < 50; ++second) record(session, failing_run("t", second));
  EXPECT_EQ(**store_->latest_output({"suite", "t"}, "00000000000000aa"), "output at 49");
  tamper("DELETE FROM outputs WHERE started_us > 1700000030000000");  // leaves the oldest: 30
  EXPECT_EQ(**store_->latest_output({"suite", "t"}, "00000000000000aa"), "output at 30");
  tamper("DELETE FROM outputs WHERE started_us = 1700000030000000");
  EXPECT_EQ(*store_->latest_output({"suite", "t"}, "00000000000000aa"), std::nullopt);
}

TEST_F(SqliteStoreTest, Replaces_the_oldest_output_after_it_was_opened_again) {
  const SessionId session = begin();
  for (int second = 0; second < 25; ++second) record(session, failing_run("t", second));
  open();
  record(session, failing_run("t", 25));
  tamper("DELETE FROM outputs WHERE started_us > 1700000006000000");
  EXPECT_EQ(**store_->latest_output({"suite", "t"}, "00000000000000aa"), "output at 6");
  tamper("DELETE FROM outputs WHERE started_us = 1700000006000000");
  EXPECT_EQ(*store_->latest_output({"suite", "t"}, "00000000000000aa"), std::nullopt);
}

TEST_F(SqliteStoreTest, Survives_rows_that_make_no_sense) {
  const SessionId session = begin();
  record(session, failing_run("t", 0));
  record(session, passing_run("t", 1));
  ASSERT_TRUE(store_->forget({}, at_second(2)));  // places them
  tamper(
      "UPDATE totals SET outcome = outcome + 90, runs = 9223372036854775807, sum_us = 1e300,"
      " min_us = -9223372036854775807 - 1, first_us = -9223372036854775807 - 1,"
      " last_us = 9223372036854775807, first_session = -4, signature = signature + 900;"
      "UPDATE runs SET outcome = -1, duration_us = -9223372036854775807 - 1,"
      " started_us = 9223372036854775807 - outcome;"
      "UPDATE histograms SET bucket = 9223372036854775807 - bucket, runs = 9223372036854775807;"
      "UPDATE signatures SET kind = 4711, line = 9223372036854775807;"
      "UPDATE targets SET framework = 'soap'");
  EXPECT_GT(summary("t").failures, 1);
  EXPECT_EQ(ranking("*").size(), 1u);
  EXPECT_EQ(store_->recent_runs({"suite", "t"}, 5)->size(), 2u);
  record(session, passing_run("t", 5));
  end(session);
}

TEST_F(SqliteStoreTest, Places_runs_by_itself_when_those_of_many_sessions_wait) {
  const int sessions = 2'300;
  for (int second = 0; second < sessions; ++second) {
    const RunRecord run = passing_run("t", second);
    const SessionId session = begin("");
    ASSERT_TRUE(store_->record_all(session, {&run, 1}));
    end(session);
  }
  EXPECT_EQ(summary("t").passes, sessions);
  tamper("DELETE FROM staged_runs");
  EXPECT_GE(summary("t").passes, 2'000);
}

TEST_F(SqliteStoreTest, Waits_no_longer_than_it_is_told_for_a_lock) {
  const SessionId session = begin();
  record(session, passing_run("t", 0));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  auto impatient = open_store({path_}, 1ms);
  ASSERT_TRUE(impatient) << to_string(impatient.error());
  const auto recorded = (*impatient)->record(session, passing_run("t", 1));
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().what, HasSubstr("locked"));
  EXPECT_TRUE((*impatient)->summarise_test({"suite", "t"})->has_value());
  sqlite3_close(other);
  EXPECT_TRUE((*impatient)->record(session, passing_run("t", 1)));
}

TEST_F(SqliteStoreTest, Does_not_acknowledge_runs_into_a_file_that_lost_its_name) {
  const SessionId session = begin();
  record(session, passing_run("t", 0));
  std::filesystem::rename(path_, path_ + ".away");
  const auto recorded = store_->record(session, passing_run("t", 1));
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().what, HasSubstr("moved or deleted"));
  std::filesystem::rename(path_ + ".away", path_);
  record(session, passing_run("t", 1));
  EXPECT_EQ(summary("t").passes, 2);
}

}  // namespace
}  // namespace unflake
