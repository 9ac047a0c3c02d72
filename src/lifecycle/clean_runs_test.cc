#include "lifecycle/gate.h"

#include <gtest/gtest.h>

#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

const std::string known(16, '1'), other(16, '2');

class CleanRunsTest : public testing::Test {
 protected:
  CleanRunsTest() {
    store_ = std::move(*open_store({folder_.file("history.db")}));
    session_ = *store_->begin_session(session_of_commit("c0"));
    entry_.test = {"suite", "a"};
    entry_.signature = known;
    entry_.since = day_of(at_second(0));
  }

  void record(std::initializer_list<const char*> signatures) {
    for (const std::string signature : signatures) {
      ++second_;
      const RunRecord run =
          signature.empty() ? passing_run("a", second_) : failing_run("a", second_, signature);
      ASSERT_TRUE(store_->record(session_, run));
    }
  }

  QuarantinedPast past() { return *past_of(*store_, entry_); }

  TempFolder folder_;
  std::unique_ptr<Store> store_;
  SessionId session_ = 0;
  int64_t second_ = 0;
  QuarantineEntry entry_;
};

TEST_F(CleanRunsTest, Count_from_behind_the_last_failure) {
  record({"", known.c_str(), "", known.c_str(), "", "", ""});
  EXPECT_EQ(past().last_seen, at_second(4));
  EXPECT_EQ(past().last_run, at_second(7));
  EXPECT_EQ(past().runs.clean, 3);
  EXPECT_EQ(past().runs.earlier_failures, 2);
  EXPECT_EQ(past().runs.earlier_runs, 4);
}

TEST_F(CleanRunsTest, Another_failure_is_not_clean_either) {
  record({known.c_str(), "", "", other.c_str(), ""});
  EXPECT_EQ(past().last_seen, at_second(1));
  EXPECT_EQ(past().runs.clean, 1);
}

TEST_F(CleanRunsTest, A_test_that_history_does_not_know_has_none) {
  EXPECT_FALSE(past().last_seen);
  EXPECT_EQ(past().runs.clean, 0);
}

}  // namespace
}  // namespace unflake
