#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "faults/failing_vfs.h"
#include "faults/history_check.h"
#include "store/recorder.h"
#include "support/first_history.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

constexpr int run_count = 9;

std::string name_of(int second) {
  return second % 2 ? "odd" : "even";
}

RunRecord run_at(int second) {
  return second % 3 == 0 ? failing_run(name_of(second), second)
                         : passing_run(name_of(second), second);
}

// Records some runs, each of them twice when it is refused, and ends the session half-way.
std::set<int> record_what_the_disk_lets(const std::string& path) {
  std::set<int> acknowledged;
  const auto store = open_store({path});
  if (!store) return acknowledged;
  SessionRecord session = session_of_commit("c0ffee");
  session.uuid = "the session";
  for (int second = 0; second < run_count; ++second) {
    for (int tries = 0; tries < 2 && !acknowledged.contains(second); ++tries) {
      const auto begun = (*store)->begin_session(session);
      if (begun && (*store)->record(*begun, run_at(second))) acknowledged.insert(second);
      if (begun && second == run_count / 2) (void)(*store)->end_session(*begun);
    }
  }
  return acknowledged;
}

void expect_all_acknowledged_once(const std::string& path, const std::set<int>& acknowledged) {
  const auto recorded = recorded_seconds(path, {"odd", "even"});
  EXPECT_EQ(integrity(path), "ok");
  for (const int second : acknowledged) EXPECT_EQ(recorded.count(second), 1u) << second;
  for (const auto& [second, times] : recorded) EXPECT_EQ(times, 1) << second;
}

struct DiskFault {
  const char* name;
  Fault fault;
};

class DiskFaultTest : public testing::TestWithParam<DiskFault> {};

TEST_P(DiskFaultTest, Every_acknowledged_run_is_there_once_whichever_call_fails) {
  bool failed = true;
  Fault fault = GetParam().fault;
  for (fault.at = 1; failed; ++fault.at) {
    SCOPED_TRACE(fault.at);
    const TempFolder folder;
    const std::string path = folder.file("history.db");
    std::set<int> acknowledged;
    {
      const FailingVfs vfs(fault);
      acknowledged = record_what_the_disk_lets(path);
      failed = vfs.has_failed();
    }
    const FailingVfs healthy({});
    expect_all_acknowledged_once(path, acknowledged);
    EXPECT_EQ(record_what_the_disk_lets(path).size(), static_cast<size_t>(run_count));
    EXPECT_EQ(recorded_seconds(path, {"odd", "even"}).size(), static_cast<size_t>(run_count));
    if (HasFailure()) return;
  }
  EXPECT_GT(fault.at, 30) << "the faults went past the history";
}

RunEnded run_ended(int second) {
  auto test = std::make_shared<unflake::Test>();
  test->id = {"suite", name_of(second)};
  RunEnded ended;
  ended.test = test;
  ended.result.started = at_second(second);
  return ended;
}

// Gives the spill file's path, if there is one.
std::string record_session(Store& store, const std::string& spill_folder) {
  HistoryRecorder recorder(store, [](const Note&) {}, {spill_folder});
  recorder.on(SessionStarted{});
  for (int second = 0; second < run_count; ++second) recorder.on(run_ended(second));
  recorder.on(SessionEnded{});
  EXPECT_EQ(recorder.all_recorded(), spill_file_in(spill_folder).empty());
  return spill_file_in(spill_folder);
}

TEST_P(DiskFaultTest, The_recorder_brings_every_run_to_the_history_or_to_the_spill_file) {
  bool failed = true;
  int spilled = 0;
  Fault fault = GetParam().fault;
  for (int64_t at = 1; failed; ++at) {
    SCOPED_TRACE(at);
    const TempFolder folder;
    const std::string path = folder.file("history.db");
    FailingVfs vfs(fault);
    const auto store = open_store({path});
    ASSERT_TRUE(store) << to_string(store.error());
    vfs.fail_after(at);
    const std::string spill = record_session(**store, folder.file("state"));
    failed = vfs.has_failed();
    vfs.heal();
    if (!spill.empty()) {
      ++spilled;
      ASSERT_TRUE(import_history(**store, spill));
    }
    const auto recorded = recorded_seconds(path, {"odd", "even"});
    EXPECT_EQ(recorded.size(), static_cast<size_t>(run_count));
    for (const auto& [second, times] : recorded) EXPECT_EQ(times, 1) << second;
    if (HasFailure()) return;
  }
  EXPECT_EQ(spilled > 0, fault.from_then_on) << "what works again a moment later needs no spill";
}

TEST_P(DiskFaultTest, The_recorder_brings_every_trial_to_the_history_or_to_the_spill_file) {
  bool failed = true;
  for (int64_t at = 1; failed; ++at) {
    SCOPED_TRACE(at);
    const TempFolder folder;
    FailingVfs vfs(GetParam().fault);
    const auto store = open_store({folder.file("history.db")});
    ASSERT_TRUE(store) << to_string(store.error());
    vfs.fail_after(at);
    {
      HistoryRecorder recorder(**store, [](const Note&) {}, {folder.file("state")});
      recorder.record_trials_in({});
      for (int second = 0; second < run_count; ++second) {
        const RunEnded run = run_ended(second);
        TrialEnded trial;
        trial.test = run.test;
        trial.result = run.result;
        recorder.on(trial);
      }
    }
    failed = vfs.has_failed();
    vfs.heal();
    const std::string spill = spill_file_in(folder.file("state"));
    if (!spill.empty()) {
      ASSERT_TRUE(import_history(**store, spill));
    }
    size_t trials = 0;
    for (const char* name : {"odd", "even"})
      trials += (*store)->recent_trials({"suite", name}, "candidate", 100)->size();
    EXPECT_EQ(trials, static_cast<size_t>(run_count));
    if (HasFailure()) return;
  }
}

TEST_P(DiskFaultTest, A_batch_is_there_as_a_whole_or_not_at_all) {
  std::vector<RunRecord> runs;
  for (int second = 0; second < run_count; ++second) runs.push_back(run_at(second));
  bool failed = true;
  for (int64_t at = 1; failed; ++at) {
    SCOPED_TRACE(at);
    const TempFolder folder;
    const std::string path = folder.file("history.db");
    FailingVfs vfs(GetParam().fault);
    const auto store = open_store({path});
    ASSERT_TRUE(store) << to_string(store.error());
    const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
    ASSERT_TRUE(session);
    vfs.fail_after(at);
    const auto recorded = (*store)->record_all(*session, runs);
    failed = vfs.has_failed();
    vfs.heal();
    const size_t there = recorded_seconds(path, {"odd", "even"}).size();
    EXPECT_TRUE(there == runs.size() || (!recorded && there == 0)) << there;
    ASSERT_TRUE((*store)->record_all(*session, runs));
    EXPECT_EQ(recorded_seconds(path, {"odd", "even"}).size(), runs.size());
    EXPECT_EQ((*store)->lifecycle().prevalence({})->front().runs, run_count);
    if (HasFailure()) return;
  }
}

TEST_P(DiskFaultTest, A_migration_that_fails_leaves_the_older_history_whole) {
  bool failed = true;
  Fault fault = GetParam().fault;
  for (fault.at = 1; failed; fault.at += 3) {  // all of them would take long
    SCOPED_TRACE(fault.at);
    const TempFolder folder;
    const std::string path = folder.file("history.db");
    {
      const FailingVfs healthy({});
      make_first_history(path);
    }
    {
      const FailingVfs vfs(fault);
      (void)open_store({path});
      failed = vfs.has_failed();
    }
    const FailingVfs healthy({});
    const auto store = open_store({path});
    ASSERT_TRUE(store) << to_string(store.error());
    EXPECT_EQ((*(*store)->summarise_test({"suite", "t"}))->passes, 3);
    EXPECT_EQ((*store)->lifecycle().flaky_failures({}, 10)->size(), 1u);
    if (HasFailure()) return;
  }
}

constexpr DiskFault disk_faults[] = {
    {"Disk_full_once", {.kind = Fault::Kind::disk_full}},
    {"Disk_full_from_then_on", {.from_then_on = true, .kind = Fault::Kind::disk_full}},
    {"Io_error_once", {.kind = Fault::Kind::io_error}},
    {"Io_error_from_then_on", {.from_then_on = true, .kind = Fault::Kind::io_error}},
    {"Without_log_once", {.kind = Fault::Kind::io_error, .no_shared_memory = true}},
    {"Without_log_from_then_on",
     {.from_then_on = true, .kind = Fault::Kind::disk_full, .no_shared_memory = true}},
};

INSTANTIATE_TEST_SUITE_P(History, DiskFaultTest, testing::ValuesIn(disk_faults),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DiskFault, A_full_disk_is_named_and_the_way_out_too) {
  const TempFolder folder;
  const std::string path = folder.file("history.db");
  ASSERT_TRUE(open_store({path}));
  FailingVfs vfs({.from_then_on = true});
  const auto store = open_store({path});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE(session);
  vfs.fail_after(1);
  const auto recorded = (*store)->record(*session, passing_run("odd", 1));
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().what, "the disk of the history database is full");
  EXPECT_EQ(recorded.error().where, path);
  EXPECT_NE(recorded.error().next, "");
  vfs.heal();
  EXPECT_TRUE((*store)->record(*session, passing_run("odd", 1)));
}

TEST(DiskFault, A_history_works_without_shared_memory) {
  const TempFolder folder;
  const std::string path = folder.file("history.db");
  {
    const FailingVfs vfs({.no_shared_memory = true});
    EXPECT_EQ(record_what_the_disk_lets(path).size(), static_cast<size_t>(run_count));
    EXPECT_EQ(recorded_seconds(path, {"odd", "even"}).size(), static_cast<size_t>(run_count));
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  }
}

}  // namespace
}  // namespace unflake
