#include "faults/history_killed_writers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "faults/child.h"
#include "support/history_runs.h"

namespace unflake {
namespace {

constexpr int writers = 8;
constexpr int sessions_each = 3;
constexpr int batches_each = 4;
constexpr int batch_size = 150;
constexpr int tests = 25;
constexpr int deaths_each = 4;

// One in ten fails and passes when it is tried again, a second later.
std::vector<RunRecord> batch_of(int writer, int session, int batch) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < batch_size; ++i) {
    const int number = ((writer * sessions_each + session) * batches_each + batch) * batch_size + i;
    const std::string name = fmt::format("t{}", i / 2 % tests);
    runs.push_back(i % 20 == 0 ? failing_run(name, number) : passing_run(name, number));
    runs.back().attempt = i % 2 + 1;
  }
  return runs;
}

SessionRecord session_of(int writer, int session) {
  SessionRecord record = session_of_commit("");
  record.uuid = fmt::format("writer {} session {}", writer, session);
  return record;
}

// Delivers all that a writer has, and writes a byte for each batch that was acknowledged.
int deliver(const StoreAddress& address, int writer, int acknowledgements) {
  const auto store = open_store(address);
  if (!store) return 1;
  for (int number = 0; number < sessions_each; ++number) {
    const auto session = (*store)->begin_session(session_of(writer, number));
    if (!session) return 2;
    for (int batch = 0; batch < batches_each; ++batch) {
      if (!(*store)->record_all(*session, batch_of(writer, number, batch))) return 3;
      if (::write(acknowledgements, "", 1) != 1) return 4;
    }
    if (!(*store)->end_session(*session)) return 5;
  }
  return 0;
}

// Kills the delivery after so many batches, which is somewhere in the work that follows them.
int deliver_until(const StoreAddress& address, int writer, int batches) {
  Pipe pipe;
  Child child([&] { return deliver(address, writer, pipe.write_end.get()); });
  pipe.write_end.reset();
  char byte = 0;
  for (int seen = 0; ::read(pipe.read_end.get(), &byte, 1) == 1;)
    if (++seen == batches) child.kill();
  return child.wait();
}

int die_and_deliver_again(const StoreAddress& address, int writer) {
  std::mt19937 random(static_cast<unsigned>(writer));
  std::uniform_int_distribution batches(1, sessions_each * batches_each);
  for (int death = 0; death < deaths_each; ++death)
    (void)deliver_until(address, writer, batches(random));
  return deliver_until(address, writer, INT32_MAX);
}

struct Expected {
  std::map<std::string, int64_t> passes, failures;
  int64_t runs = 0, all_failures = 0;

  Expected() {
    for (int writer = 0; writer < writers; ++writer)
      for (int session = 0; session < sessions_each; ++session)
        for (int batch = 0; batch < batches_each; ++batch)
          for (const RunRecord& run : batch_of(writer, session, batch)) add(run);
  }
  void add(const RunRecord& run) {
    const bool passed = run.outcome == OutcomeKind::pass;
    ++(passed ? passes : failures)[run.test.name];
    ++runs;
    all_failures += !passed;
  }
};

void expect_each_run_once(Store& store, Expected& expected) {
  for (int i = 0; i < tests; ++i) {
    const TestId test{"suite", fmt::format("t{}", i)};
    const auto summary = store.summarise_test(test);
    ASSERT_TRUE(summary && *summary) << test.name;
    EXPECT_EQ((*summary)->passes, expected.passes[test.name]) << test.name;
    EXPECT_EQ((*summary)->failures, expected.failures[test.name]) << test.name;
    const auto runs = store.recent_runs(test, SIZE_MAX);
    ASSERT_TRUE(runs);
    std::set<TimePoint> starts;
    for (const RecentRun& run : *runs) starts.insert(run.started);
    EXPECT_EQ(starts.size(), runs->size()) << test.name;
    EXPECT_EQ(static_cast<int64_t>(runs->size()),
              expected.passes[test.name] + expected.failures[test.name]);
  }
}

void expect_sums_of_sessions(Store& store, const Expected& expected) {
  const auto sums = store.lifecycle().prevalence({});
  ASSERT_TRUE(sums);
  ASSERT_EQ(sums->size(), 1u);
  EXPECT_EQ((*sums)[0].runs, expected.runs);
  EXPECT_EQ((*sums)[0].builds, writers * sessions_each);
  EXPECT_EQ((*sums)[0].failed_builds, writers * sessions_each);
  const auto failures = store.lifecycle().flaky_failures({}, SIZE_MAX);
  ASSERT_TRUE(failures);
  int64_t runs = 0;
  for (const FlakyFailure& failure : *failures) {
    runs += failure.runs;
    EXPECT_EQ(failure.wasted, failure.runs * std::chrono::milliseconds(10)) << failure.test.name;
  }
  EXPECT_EQ(runs, expected.all_failures);
}

}  // namespace

void expect_killed_writers_lose_and_double_nothing(const StoreAddress& address) {
  const auto statuses = at_once(writers, [&](int i) { return die_and_deliver_again(address, i); });
  EXPECT_EQ(statuses, std::vector<int>(writers, 0));
  const auto store = open_store(address);
  ASSERT_TRUE(store) << to_string(store.error());
  Expected expected;
  expect_each_run_once(**store, expected);
  expect_sums_of_sessions(**store, expected);
  ASSERT_TRUE((*store)->forget({}, at_second(0)));  // moves everything on
  expect_each_run_once(**store, expected);
  expect_sums_of_sessions(**store, expected);
}

}  // namespace unflake
