#include <gtest/gtest.h>

#include <random>
#include <set>

#include "faults/child.h"
#include "faults/history_check.h"
#include "faults/history_killed_writers.h"
#include "support/history_runs.h"
#include "support/temp_folder.h"

namespace unflake {
namespace {

const std::vector<std::string> names = {"a", "b", "c", "d", "e"};

RunRecord run_at(int64_t second) {
  const std::string& name = names[static_cast<size_t>(second) % names.size()];
  return second % 11 == 0 ? failing_run(name, second) : passing_run(name, second);
}

// Records runs for ever and writes the second of each that was acknowledged. Sessions end often, so
// that the end may fall anywhere, also into a fold.
int record_until_killed(const std::string& path, int64_t first_second, int acknowledgements) {
  const auto store = open_store({path});
  if (!store) return 1;
  auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  for (int64_t second = first_second; session; ++second) {
    if (!(*store)->record(*session, run_at(second))) return 2;
    if (::write(acknowledgements, &second, sizeof second) != sizeof second) return 3;
    if (second % 20 == 0 && !(*store)->end_session(*session)) return 4;
  }
  return 5;
}

std::set<int64_t> kill_after(int acknowledgements, const std::string& path, int64_t first_second) {
  Pipe pipe;
  Child child([&] { return record_until_killed(path, first_second, pipe.write_end.get()); });
  pipe.write_end.reset();
  std::set<int64_t> seconds;
  int64_t second = 0;
  while (::read(pipe.read_end.get(), &second, sizeof second) == sizeof second) {
    seconds.insert(second);
    if (seconds.size() == static_cast<size_t>(acknowledgements)) child.kill();
  }
  EXPECT_EQ(child.wait(), -1);
  return seconds;
}

TEST(KilledProcess, Loses_no_acknowledged_run_and_doubles_none) {
  const TempFolder folder;
  const std::string path = folder.file("history.db");
  std::mt19937 random(1234);
  std::set<int64_t> acknowledged;
  for (int round = 0; round < 60; ++round) {
    const int after = std::uniform_int_distribution(1, 120)(random);
    acknowledged.merge(kill_after(after, path, int64_t{100'000} * round));
  }
  const auto recorded = recorded_seconds(path, names);
  for (const int64_t second : acknowledged) ASSERT_EQ(recorded.count(second), 1u) << second;
  for (const auto& [second, times] : recorded) ASSERT_EQ(times, 1) << second;
  EXPECT_LE(recorded.size(), acknowledged.size() + 60) << "at most one per death is unacknowledged";
  EXPECT_EQ(integrity(path), "ok");
}

int record_some(const std::string& path, int64_t first_second, int count) {
  const auto store = open_store({path});
  if (!store) return 1;
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  if (!session) return 2;
  for (int64_t second = first_second; second < first_second + count; ++second) {
    if (!(*store)->record(*session, run_at(second))) return 3;
    if (second % 50 == 0 && !(*store)->end_session(*session)) return 4;
  }
  return (*store)->end_session(*session) ? 0 : 5;
}

TEST(ManyProcesses, Write_into_one_history_and_lose_nothing) {
  const TempFolder folder;
  const std::string path = folder.file("history.db");
  const int runs_each = 300;
  const auto statuses =
      at_once(4, [&](int i) { return record_some(path, int64_t{10'000} * i, runs_each); });
  EXPECT_EQ(statuses, std::vector<int>(4, 0));
  const auto recorded = recorded_seconds(path, names);
  EXPECT_EQ(recorded.size(), 4u * runs_each);
  for (const auto& [second, times] : recorded) ASSERT_EQ(times, 1) << second;
  EXPECT_EQ(integrity(path), "ok");
}

TEST(ManyProcesses, Lose_and_double_nothing_when_they_are_killed_and_deliver_again) {
  const TempFolder folder;
  const std::string path = folder.file("history.db");
  expect_killed_writers_lose_and_double_nothing({path});
  EXPECT_EQ(integrity(path), "ok");
}

TEST(ManyProcesses, Create_a_history_together) {
  for (int round = 0; round < 25; ++round) {
    const TempFolder folder;
    const std::string path = folder.file("new/history.db");
    const auto statuses =
        at_once(4, [&](int i) { return record_some(path, int64_t{10'000} * i, 1); });
    ASSERT_EQ(statuses, std::vector<int>(4, 0)) << round;
    ASSERT_EQ(recorded_seconds(path, names).size(), 4u) << round;
  }
}

}  // namespace
}  // namespace unflake
