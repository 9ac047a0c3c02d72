#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "faults/child.h"
#include "faults/history_check.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string try_to_record(const std::string& path) {
  const auto store = open_store({path});
  const auto session = store ? (*store)->begin_session(session_of_commit("c0ffee"))
                             : Result<SessionId>(store.error());
  return session ? "recorded" : to_string(session.error());
}

std::string try_to_read(const std::string& path) {
  const auto store = open_store_to_read({path});
  if (!store) return to_string(store.error());
  const auto tests = (*store)->summarise("*", 10);
  if (!tests) return to_string(tests.error());
  std::string text;
  for (const TestSummary& test : *tests)
    text += to_string(test.test) + " " + std::to_string(test.passes) + "\n";
  return text;
}

// What `work` says after `prepare` in a process of its own; "not prepared" when that fails.
std::string in_child(const std::function<bool()>& prepare,
                     const std::function<std::string()>& work) {
  Pipe pipe;
  Child child([&] {
    const std::string text = prepare() ? work() : "not prepared";
    return ::write(pipe.write_end.get(), text.data(), text.size()) < 0 ? 1 : 0;
  });
  pipe.write_end.reset();
  EXPECT_EQ(child.wait(), 0);
  std::array<char, 4096> text{};
  const ssize_t size = ::read(pipe.read_end.get(), text.data(), text.size());
  return std::string(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

// Until the other processes have closed the pipe; 0 when they wrote nothing.
int wait_for_end(const Pipe& pipe) {
  char byte = 0;
  return static_cast<int>(::read(pipe.read_end.get(), &byte, 1));
}

// Permission bits do not hold for root, so somebody else tries.
std::string without_privileges(const std::function<std::string()>& work) {
  const auto become_nobody = [] {
    return ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
  };
  return in_child(become_nobody, work);
}

bool mount_read_only(const std::string& folder) {
  const char* path = folder.c_str();
  const bool has_own_mounts =
      ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  return has_own_mounts && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(path, path, nullptr, MS_BIND, nullptr) == 0 &&
         ::mount("none", path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

class ReadOnlyTest : public testing::Test {
 protected:
  ~ReadOnlyTest() override { set_mode(folder_.path(), 0700); }

  static void set_mode(const std::string& path, mode_t mode) {
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  }

  std::unique_ptr<Store> record_three_runs() const {
    auto store = open_store({path_});
    EXPECT_TRUE(store);
    const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
    for (int second = 0; second < 3; ++second)
      EXPECT_TRUE((*store)->record(*session, passing_run("t", second)));
    return std::move(*store);
  }

  std::string record_without_privileges() const {
    return without_privileges([this] { return try_to_record(path_); });
  }
  std::string read_without_privileges() const {
    return without_privileges([this] { return try_to_read(path_); });
  }

  TempFolder folder_;
  std::string path_ = folder_.file("history %41?#.db");
};

TEST_F(ReadOnlyTest, Folder_without_a_history_is_named) {
  set_mode(folder_.path(), 0555);
  EXPECT_THAT(record_without_privileges(), AllOf(HasSubstr("Permission denied"), HasSubstr(path_),
                                                 HasSubstr("--store"), HasSubstr("read-only")));
  path_ = folder_.file("new/history.db");
  EXPECT_THAT(record_without_privileges(),
              AllOf(HasSubstr("Permission denied"), HasSubstr("cannot make the folder")));
}

TEST_F(ReadOnlyTest, History_is_named_and_unharmed) {
  record_three_runs();
  const std::string before = bytes_of(path_);
  set_mode(path_, 0444);
  set_mode(folder_.path(), 0555);
  EXPECT_THAT(record_without_privileges(),
              AllOf(HasSubstr(path_), HasSubstr("read-only"), HasSubstr("--no-history")));
  set_mode(folder_.path(), 0777);
  EXPECT_THAT(record_without_privileges(),
              AllOf(HasSubstr(path_), HasSubstr("permissions"), HasSubstr("--no-history")));
  set_mode(path_, 0000);
  EXPECT_THAT(record_without_privileges(), HasSubstr("Permission denied"));
  set_mode(path_, 0644);
  EXPECT_EQ(bytes_of(path_), before);
}

TEST_F(ReadOnlyTest, Folder_that_cannot_be_entered_is_named) {
  set_mode(folder_.path(), 0000);
  EXPECT_THAT(record_without_privileges(), HasSubstr("Permission denied"));
  EXPECT_THAT(read_without_privileges(), HasSubstr("Permission denied"));
}

TEST_F(ReadOnlyTest, Folder_lets_a_closed_history_be_read) {
  record_three_runs();
  set_mode(path_, 0444);
  set_mode(folder_.path(), 0555);
  EXPECT_EQ(read_without_privileges(), "suite:t 3\n");
}

TEST_F(ReadOnlyTest, Folder_lets_a_history_with_an_empty_log_be_read) {
  record_three_runs();
  std::ofstream(path_ + "-wal").flush();
  set_mode(folder_.path(), 0555);
  EXPECT_EQ(read_without_privileges(), "suite:t 3\n");
}

TEST_F(ReadOnlyTest, Folder_lets_a_history_be_read_while_its_owner_records) {
  Pipe recorded, finish;
  Child owner([&] {
    finish.write_end.reset();
    const auto store = record_three_runs();
    recorded.write_end.reset();
    return wait_for_end(finish);
  });
  recorded.write_end.reset();
  EXPECT_EQ(wait_for_end(recorded), 0);
  for (const char* suffix : {"", "-wal", "-shm"}) set_mode(path_ + suffix, 0444);
  set_mode(folder_.path(), 0555);
  EXPECT_EQ(read_without_privileges(), "suite:t 3\n");
  finish.write_end.reset();
  EXPECT_EQ(owner.wait(), 0);
}

TEST_F(ReadOnlyTest, Folder_with_a_log_that_nobody_can_read_is_explained) {
  const auto store = record_three_runs();
  const TempFolder copy;
  for (const char* suffix : {"", "-wal"})
    std::filesystem::copy_file(path_ + suffix, copy.file(std::string("history.db") + suffix));
  set_mode(copy.path(), 0555);
  EXPECT_THAT(without_privileges([&] { return try_to_read(copy.file("history.db")); }),
              AllOf(HasSubstr("log cannot be read"), HasSubstr("copy the file"),
                    Not(HasSubstr("No such file"))));
  set_mode(copy.path(), 0700);
  EXPECT_EQ(try_to_read(copy.file("history.db")), "suite:t 3\n");
}

TEST_F(ReadOnlyTest, File_system_is_named_when_runs_should_be_recorded_and_lets_them_be_read) {
  record_three_runs();
  const std::string said = in_child([this] { return mount_read_only(folder_.path()); },
                                    [this] {
                                      return try_to_record(path_) + "\n" +
                                             try_to_record(folder_.file("new/history.db")) + "\n" +
                                             try_to_read(path_);
                                    });
  if (said == "not prepared") GTEST_SKIP() << "no mount of one's own";
  EXPECT_THAT(said, AllOf(HasSubstr("the history's folder is read-only: Read-only file system"),
                          HasSubstr("cannot make the folder of the history: Read-only file system"),
                          HasSubstr("--no-history"), HasSubstr("\nsuite:t 3\n"),
                          Not(HasSubstr("No such file"))));
}

class ReaderTest : public ReadOnlyTest {
 protected:
  Error refusal() const {
    const auto store = open_store_to_read({path_});
    return store ? internal_error("was opened") : store.error();
  }

  void sql(const char* statements) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, statements, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
};

TEST_F(ReaderTest, Makes_no_history_where_there_is_none) {
  EXPECT_EQ(refusal().what, "there is no history yet");
  path_ = folder_.file("new/history.db");
  EXPECT_EQ(refusal().what, "there is no history yet");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ReaderTest, Leaves_an_empty_file_empty) {
  std::ofstream(path_).flush();
  EXPECT_EQ(refusal().what, "there is no history yet");
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
}

TEST_F(ReaderTest, Refuses_another_version_and_changes_nothing) {
  record_three_runs();
  for (const char* version : {"PRAGMA user_version = 4711", "PRAGMA user_version = 0"}) {
    sql(version);
    const std::string before = bytes_of(path_);
    EXPECT_THAT(refusal().what, HasSubstr("version"));
    EXPECT_EQ(bytes_of(path_), before);
  }
}

TEST_F(ReaderTest, Refuses_what_belongs_to_another_application) {
  sql("CREATE TABLE notes (text)");
  EXPECT_THAT(refusal().what, HasSubstr("another application"));
}

TEST_F(ReaderTest, Refuses_to_record) {
  record_three_runs();
  const auto store = open_store_to_read({path_});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().what, HasSubstr("cannot be written"));
}

TEST_F(ReaderTest, Leaves_nothing_beside_the_history) {
  record_three_runs();
  EXPECT_EQ(try_to_read(path_), "suite:t 3\n");
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(file.path(), path_);
}

}  // namespace
}  // namespace unflake
