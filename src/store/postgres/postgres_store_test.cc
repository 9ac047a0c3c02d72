#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/postgres/pg_parts.h"
#include "store/store.h"
#include "support/history_runs.h"
#include "support/postgres_server.h"

namespace unflake {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Error error_of_opening(const std::string& url) {
  const auto store = open_store({url}, 5s);
  if (!store) return store.error();
  ADD_FAILURE() << "it was opened";
  return {};
}

Error error_of_reading(const std::string& url) {
  const auto store = open_store_to_read({url}, 5s);
  if (!store) return store.error();
  ADD_FAILURE() << "it was opened";
  return {};
}

// A database with a history that has one run, and a role that may do nothing by itself.
class PostgresStoreTest : public testing::Test {
 protected:
  PostgresStoreTest() {
    const auto store = open_store({url_});
    EXPECT_TRUE(store) << to_string(store.error());
    const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
    EXPECT_TRUE((*store)->record(*session, passing_run("t", 0)));
    execute("DROP OWNED BY guest");
  }

  static void SetUpTestSuite() {
    PostgresServer::shared().execute("postgres",
                                     "DO $$ BEGIN CREATE ROLE guest LOGIN;"
                                     " EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  }

  void execute(const std::string& sql) const { PostgresServer::shared().execute(database_, sql); }
  std::string url_of(const std::string& user) const {
    return PostgresServer::shared().url_of(database_, user);
  }

  std::string url_ = PostgresServer::shared().new_database();
  std::string database_ =
      url_.substr(url_.find("/test_") + 1, url_.find('?') - url_.find("/test_") - 1);
};

TEST_F(PostgresStoreTest, Refuses_a_newer_format) {
  execute("UPDATE unflake_schema SET version = 77");
  for (const Error& error : {error_of_opening(url_), error_of_reading(url_)}) {
    EXPECT_THAT(error.what, HasSubstr("version 77"));
    EXPECT_THAT(error.next, HasSubstr("newer unflake"));
  }
}

TEST_F(PostgresStoreTest, Needs_a_writer_to_bring_an_older_format_up_to_date) {
  execute("UPDATE unflake_schema SET version = 1");
  EXPECT_THAT(error_of_reading(url_).next, HasSubstr("brings it up to date"));
}

// As the second version left it: three runs of which one is not folded yet, and two under a plan.
TEST(PostgresMigration, Takes_runs_under_a_plan_out_of_the_figures_and_keeps_them) {
  const std::string url = PostgresServer::shared().new_database();
  const std::string database =
      url.substr(url.find("/test_") + 1, url.find('?') - url.find("/test_") - 1);
  PostgresServer::shared().execute(
      database, migration(1, Dialect::postgres) + migration(2, Dialect::postgres) +
                    "CREATE TABLE unflake_schema (version BIGINT NOT NULL);"
                    "INSERT INTO unflake_schema VALUES (2);"
                    "INSERT INTO tests (id, project, target, name) VALUES (7, 0, 'suite', 't');"
                    "INSERT INTO sessions (id, uuid, started_us, commit_id, branch, dirty, machine,"
                    " unflake_version, command_line) VALUES (3, 'one', 1, 'c1', '', 0, '', '', '');"
                    "INSERT INTO plans (id, plan) VALUES (6, 'late');"
                    "INSERT INTO runs VALUES (7, 1000000, 3, 1, 10, 0, 0, 0), (7, 2000000, 3, 2, "
                    "30, 0, 0, 6),"
                    " (7, 3000000, 3, 3, 10, 0, 0, 0), (7, 4000000, 3, 4, 50, 0, 0, 6);"
                    "INSERT INTO fresh_runs VALUES (7, 3000000, 3, 3, 10, 0, 0, 0),"
                    " (7, 4000000, 3, 4, 50, 0, 0, 6);"
                    "INSERT INTO totals VALUES (7, 0, 0, 2, 40, 10, 30, 1000000, 3, 2000000, 3)");
  const auto store = open_store({url});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto summary = *(*store)->summarise_test({"suite", "t"});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->passes, 2);
  EXPECT_EQ(summary->pass_durations.mean, 10us);
  const auto trials = *(*store)->recent_trials({"suite", "t"}, "", 10);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].plan, "late");
  EXPECT_EQ(trials[0].duration, 50us);
}

TEST_F(PostgresStoreTest, Leaves_a_database_of_something_else_alone) {
  execute("DROP TABLE unflake_schema");
  for (const Error& error : {error_of_opening(url_), error_of_reading(url_)}) {
    EXPECT_THAT(error.what, HasSubstr("tables of something else"));
    EXPECT_THAT(error.what, HasSubstr("runs"));
    EXPECT_THAT(error.next, HasSubstr("createdb"));
  }
}

TEST_F(PostgresStoreTest, Says_which_rights_are_missing) {
  const Error error = error_of_opening(url_of("guest"));
  EXPECT_THAT(error.what, HasSubstr("does not permit"));
  EXPECT_THAT(error.next, HasSubstr("grant"));
}

TEST_F(PostgresStoreTest, Answers_a_role_that_may_only_read) {
  execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest");
  const auto store = open_store_to_read({url_of("guest")});
  ASSERT_TRUE(store) << to_string(store.error());
  EXPECT_EQ((**(*store)->summarise_test({"suite", "t"})).passes, 1);
  EXPECT_THAT((*store)->record(1, passing_run("t", 1)).error().what, HasSubstr("questions only"));
  EXPECT_FALSE((*store)->begin_session({}));
}

TEST_F(PostgresStoreTest, Takes_runs_of_a_role_that_owns_nothing) {
  execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest");
  const auto store = open_store({url_of("guest"), "another project"});
  ASSERT_TRUE(store) << to_string(store.error());
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE(session) << to_string(session.error());
  ASSERT_TRUE(
      (*store)->record_all(*session, std::vector{failing_run("t", 1), passing_run("t", 2)}));
  const auto ended = (*store)->end_session(*session);
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_EQ((*store)->lifecycle().flaky_failures({}, 10)->size(), 1u);
}

TEST_F(PostgresStoreTest, Has_no_answers_for_a_project_that_nobody_recorded) {
  const auto store = open_store_to_read({url_, "unknown"});
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->summarise("*", 10)->empty());
}

TEST_F(PostgresStoreTest, Finds_a_history_that_was_made_anew_under_it) {
  const auto store = open_store({url_});
  const auto session = (*store)->begin_session(session_of_commit("c0ffee"));
  ASSERT_TRUE((*store)->record(*session, passing_run("t", 1)));
  execute(
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
      " WHERE datname = current_database() AND pid <> pg_backend_pid();"
      "DELETE FROM tests");
  ASSERT_TRUE((*store)->record(*session, passing_run("t", 2)));
  EXPECT_EQ((**(*store)->summarise_test({"suite", "t"})).passes, 1);
}

TEST(EmptyPostgresDatabase, Has_no_history_to_read) {
  EXPECT_EQ(error_of_reading(PostgresServer::shared().new_namespace()).what,
            "there is no history yet");
}

TEST(PostgresServerCheck, Refuses_old_versions_and_other_encodings) {
  const PgConnection connection(PostgresServer::shared().url_of("postgres"), 5s);
  EXPECT_NO_THROW(check_server(connection, 130000, "UTF8"));
  EXPECT_THROW(check_server(connection, 120022, "UTF8"), PgFailure);
  EXPECT_THROW(check_server(connection, 150000, "LATIN1"), PgFailure);
}

}  // namespace
}  // namespace unflake
