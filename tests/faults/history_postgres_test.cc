#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/child.h"
#include "faults/history_killed_writers.h"
#include "support/history_runs.h"
#include "support/postgres_server.h"

namespace unflake {
namespace {

using testing::HasSubstr;

PostgresServer& server() {
  return PostgresServer::shared();
}

int64_t runs_of(Store& store, const std::string& name) {
  const auto summary = store.summarise_test({"suite", name});
  EXPECT_TRUE(summary) << to_string(summary.error());
  return summary && *summary ? (*summary)->passes + (*summary)->failures : 0;
}

TEST(KilledPostgresWriters, Lose_and_double_nothing) {
  expect_killed_writers_lose_and_double_nothing({server().new_namespace()});
}

int make_history(const std::string& url, int number) {
  const auto store = open_store({url, "project"});
  if (!store) return 1;
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  return session && (*store)->record(*session, passing_run("t", number)) ? 0 : 2;
}

TEST(ManyPostgresWriters, Create_a_history_together) {
  for (int round = 0; round < 3; ++round) {
    const std::string url = server().new_namespace();
    const auto statuses = at_once(4, [&](int i) { return make_history(url, i); });
    ASSERT_EQ(statuses, std::vector<int>(4, 0)) << round;
    const auto store = open_store({url, "project"});
    ASSERT_TRUE(store);
    EXPECT_EQ(runs_of(**store, "t"), 4);
  }
}

// Ends the connections named so, once for each byte that is written; whoever wrote it goes on and
// may be anywhere in its work when that happens.
int end_connections(Pipe& orders, const std::string& application) {
  orders.write_end.reset();
  char byte = 0;
  while (::read(orders.read_end.get(), &byte, 1) == 1)
    server().execute("postgres",
                     "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                     " WHERE application_name = '" +
                         application + "'");
  return 0;
}

TEST(LostPostgresConnection, Is_made_again_and_nothing_is_lost_or_doubled) {
  const auto store = open_store({server().new_namespace() + "&application_name=victim"});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE(session);
  Pipe orders;
  Child killer([&] { return end_connections(orders, "victim"); });
  orders.read_end.reset();
  for (int second = 0; second < 200; ++second) {
    if (second % 10 == 0) {
      ASSERT_EQ(::write(orders.write_end.get(), "", 1), 1);
    }
    const RunRecord run = second % 7 == 0 ? failing_run("t", second) : passing_run("t", second);
    while (!(*store)->record(*session, run)) {
      // two losses in a row are told
    }
  }
  orders.write_end.reset();
  EXPECT_EQ(killer.wait(), 0);
  while (!(*store)->end_session(*session)) {
  }
  EXPECT_EQ(runs_of(**store, "t"), 200);
  const auto failures = (*store)->lifecycle().flaky_failures({}, 10);
  ASSERT_TRUE(failures);
  ASSERT_EQ(failures->size(), 1u);
  EXPECT_EQ((*failures)[0].runs, 29);
}

TEST(StoppedPostgresServer, Is_told_and_taken_up_again_when_it_is_back) {
  PostgresServer own;
  const auto store = open_store({own.url_of("postgres")});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE((*store)->record(*session, passing_run("t", 0)));
  own.stop();
  const auto recorded = (*store)->record(*session, passing_run("t", 1));
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().what, HasSubstr("cannot reach the history's server"));
  EXPECT_FALSE((*store)->summarise("*", 10));
  own.start();
  EXPECT_TRUE((*store)->record(*session, passing_run("t", 1)));
  EXPECT_EQ(runs_of(**store, "t"), 2);
}

}  // namespace
}  // namespace unflake
