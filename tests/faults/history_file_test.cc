#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "faults/failing_vfs.h"
#include "faults/history_check.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class HistoryFileTest : public testing::Test {
 protected:
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  void sql(const std::string& statements) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }

  void make_history() const {
    const auto store = open_store({path_});
    ASSERT_TRUE(store);
    const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
    ASSERT_TRUE(session);
    for (int second = 0; second < 200; ++second) {
      ASSERT_TRUE((*store)->record(*session, failing_run("t", second)));
      ASSERT_TRUE((*store)->record(*session, passing_run("u", second)));
    }
    ASSERT_TRUE((*store)->end_session(*session));
    ASSERT_TRUE((*store)->record(*session, passing_run("t", 1000)));
  }

  // Opening fails, says where and what to do, and changes nothing.
  Error refusal() const {
    const std::string before = bytes_of(path_);
    const auto store = open_store({path_});
    EXPECT_EQ(bytes_of(path_), before);
    if (store) {
      ADD_FAILURE() << "was opened";
      return {};
    }
    EXPECT_EQ(store.error().where, path_);
    EXPECT_NE(store.error().next, "");
    return store.error();
  }

  TempFolder folder_;
  std::string path_ = folder_.file("history.db");
};

TEST_F(HistoryFileTest, Of_a_newer_unflake_is_left_alone) {
  make_history();
  sql("PRAGMA user_version = 4711");
  const Error error = refusal();
  EXPECT_EQ(error.kind, ErrorKind::internal);
  EXPECT_THAT(error.what, AllOf(HasSubstr("newer unflake"), HasSubstr("4711")));
  EXPECT_THAT(error.next, HasSubstr("upgrade unflake"));
}

TEST_F(HistoryFileTest, Of_another_application_is_left_alone) {
  sql("PRAGMA application_id = 99; CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
  EXPECT_THAT(refusal().what, HasSubstr("another application"));
}

TEST_F(HistoryFileTest, Without_an_application_is_left_alone_when_it_has_tables) {
  sql("PRAGMA user_version = 1; CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
  EXPECT_THAT(refusal().what, HasSubstr("another application"));
}

TEST_F(HistoryFileTest, Of_another_application_keeps_its_log) {
  sqlite3* owner = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &owner), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(owner,
                         "PRAGMA journal_mode = WAL; CREATE TABLE notes (text);"
                         "INSERT INTO notes VALUES ('mine')",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  const std::string log = bytes_of(path_ + "-wal");
  EXPECT_THAT(refusal().what, HasSubstr("another application"));
  EXPECT_EQ(bytes_of(path_ + "-wal"), log);
  sqlite3_close(owner);
}

TEST_F(HistoryFileTest, That_is_no_database_is_left_alone) {
  for (const std::string& bytes : {std::string("hello\n"), std::string(100'000, 'x'),
                                   std::string(1, '\0'), std::string(4096, '\0')}) {
    write(bytes);
    EXPECT_THAT(refusal().what, HasSubstr("not an SQLite database"));
  }
}

TEST_F(HistoryFileTest, That_was_cut_is_left_alone) {
  make_history();
  const std::string whole = bytes_of(path_);
  for (const size_t size : {whole.size() / 2, whole.size() - 100, size_t{4096}, size_t{512}}) {
    write(whole.substr(0, size));
    const Error error = refusal();
    EXPECT_THAT(error.what, HasSubstr("damaged")) << size;
    EXPECT_THAT(error.next, AllOf(HasSubstr(".recover"), HasSubstr("move")));
  }
}

TEST_F(HistoryFileTest, That_is_empty_becomes_a_history) {
  write("");
  make_history();
  EXPECT_EQ(recorded_seconds(path_, {"t"}).size(), 201u);
}

// Whatever is damaged, every question gets an answer or an error.
TEST_F(HistoryFileTest, With_damaged_pages_never_crashes_a_reader_or_writer) {
  make_history();
  const std::string whole = bytes_of(path_);
  const FailingVfs without_waiting({});
  std::mt19937 random(99);
  for (int round = 0; round < 400; ++round) {
    std::string damaged = whole;
    const int bytes = std::uniform_int_distribution(1, 30)(random);
    for (int i = 0; i < bytes; ++i) {
      const auto at = std::uniform_int_distribution<size_t>(100, damaged.size() - 1)(random);
      damaged[at] = static_cast<char>(random());
    }
    write(damaged);
    const auto store = open_store({path_});
    if (!store) continue;
    (void)(*store)->summarise("*", 10);
    (void)(*store)->summarise_test({"suite", "t"});
    (void)(*store)->recent_runs({"suite", "t"}, 50);
    (void)(*store)->latest_output({"suite", "t"}, "00000000000000aa");
    (void)(*store)->record(1, failing_run("t", 5000));
    (void)(*store)->end_session(1);
  }
}

TEST_F(HistoryFileTest, Cannot_be_a_folder) {
  std::filesystem::create_directory(path_);
  const auto store = open_store({path_});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::usage);
  EXPECT_THAT(to_string(store.error()), HasSubstr("folder"));
}

TEST_F(HistoryFileTest, Cannot_be_a_pipe_that_nobody_writes_to) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto store = open_store({path_});
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().what, HasSubstr("regular file"));
}

TEST_F(HistoryFileTest, Cannot_lie_below_a_file) {
  write("a file");
  const auto store = open_store({path_ + "/history.db"});
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().what, HasSubstr("Not a directory"));
}

}  // namespace
}  // namespace unflake
